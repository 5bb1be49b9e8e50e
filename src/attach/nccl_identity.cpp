// SPDX-License-Identifier: Apache-2.0
#include "attach/nccl_identity.hpp"

#include "bpf/shared/attach.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

namespace gpusnoop {
namespace {

constexpr size_t longest = 4096; // of such a function; 1238 in NCCL 2.29
// In older ones nothing in front of the rank is the same in all ranks: 2.16.
constexpr uint32_t oldest_version = 21600;

class Functions {
public:
    Functions(const Elf& elf, std::span<const std::string_view> names) : elf_(elf), functions_(elf.functions(names)) {}

    // Nothing where there is none of that name.
    Code code(std::string_view name)
    {
        const auto function = std::ranges::find(functions_, name, &Symbol::name);
        if (function == functions_.end())
            return {};
        bytes_ = elf_.bytes(function->file_offset, std::min<size_t>(function->size, longest));
        return {bytes_, function->address};
    }

private:
    const Elf& elf_;
    std::vector<Symbol> functions_;
    std::vector<uint8_t> bytes_; // of the last one asked for
};

} // namespace

std::optional<uint32_t> identity_offset(const Elf& elf, const Decoder& decoder)
{
    // The first three in the order of their fields.
    constexpr std::string_view names[] = {"ncclCommUserRank", "ncclCommCount", "ncclCommCuDevice", "ncclGetVersion"};
    Functions functions(elf, names);
    if (decoder.returned_constant(functions.code("ncclGetVersion")).value_or(0) < oldest_version)
        return std::nullopt;
    const auto rank = decoder.returned_field(functions.code(names[0]));
    for (size_t i = 1; i < 3; i++)
        if (const auto field = decoder.returned_field(functions.code(names[i])); !rank || field != *rank + 4 * i)
            return std::nullopt;
    return *rank % 8 == 0 && *rank && *rank / 8 <= COOKIE_WORD_MAX ? rank : std::nullopt;
}

} // namespace gpusnoop
