// SPDX-License-Identifier: Apache-2.0
#include "attach/nccl_identity.hpp"

#include "bpf/shared/collective.h"
#include "bpf/shared/probe.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

namespace gpusnoop {
namespace {

static_assert((COMM_HAS_MAGIC | (COMM_HAS_MAGIC - 1)) <= COOKIE_WORD_MAX);

constexpr size_t function_bytes_max = 4096; // functions that return a field have at most 1238 bytes in NCCL 2.29
// NCCL 2.16. In older versions, the 8 bytes before the rank in ncclComm differ between ranks, so they cannot identify
// the communicator.
constexpr uint32_t oldest_version = 21600;
constexpr uint32_t magic_version = 22100;

class Functions {
public:
    Functions(const Elf& elf, std::span<const std::string_view> names) : elf_(elf), functions_(elf.functions(names)) {}

    // Returns no code if there is no function of this name.
    Code code(std::string_view name)
    {
        const auto function = std::ranges::find(functions_, name, &Symbol::name);
        if (function == functions_.end())
            return {};
        bytes_ = elf_.bytes(function->file_offset, std::min<size_t>(function->size, function_bytes_max));
        return {bytes_, function->address};
    }

private:
    const Elf& elf_;
    std::vector<Symbol> functions_;
    std::vector<uint8_t> bytes_; // code of the last function requested
};

// Returns 0 if the version is unknown.
uint32_t version_of(const Elf& elf, const Decoder& decoder)
{
    constexpr std::string_view names[] = {"ncclGetVersion"};
    return static_cast<uint32_t>(decoder.returned_constant(Functions(elf, names).code(names[0])).value_or(0));
}

} // namespace

std::optional<uint32_t> identity_offset(const Elf& elf, const Decoder& decoder)
{
    // Functions in the order in which ncclComm stores the fields that they return.
    constexpr std::string_view names[] = {"ncclCommUserRank", "ncclCommCount", "ncclCommCuDevice"};
    if (version_of(elf, decoder) < oldest_version)
        return std::nullopt;
    Functions functions(elf, names);
    const auto rank = decoder.returned_field(functions.code(names[0]));
    for (size_t i = 1; i < 3; i++)
        if (const auto field = decoder.returned_field(functions.code(names[i])); !rank || field != *rank + 4 * i)
            return std::nullopt;
    return *rank % 8 == 0 && *rank && *rank / 8 < COMM_HAS_MAGIC ? rank : std::nullopt;
}

uint32_t identity_word(const Elf& elf, const Decoder& decoder)
{
    const auto offset = identity_offset(elf, decoder);
    if (!offset)
        return 0;
    return *offset / 8 | (version_of(elf, decoder) >= magic_version ? COMM_HAS_MAGIC : 0);
}

} // namespace gpusnoop
