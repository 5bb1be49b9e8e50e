// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/collective_sums.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace gpusnoop {
namespace {

constexpr std::array<uint8_t, 12> type_bytes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1}; // bytes per element, by enum
                                                                                     // ncclDataType_t

// Operations whose count argument is the number of elements per rank. The call moves this number times the number of
// ranks.
constexpr std::string_view counted_by_share[] = {"AllGather", "ReduceScatter", "AlltoAll", "Gather", "Scatter"};

} // namespace

std::string_view operation_of(std::string_view symbol)
{
    if (symbol.starts_with("nccl"))
        symbol.remove_prefix(4);
    if (symbol.ends_with("Config"))
        symbol.remove_suffix(6);
    return symbol == "Bcast" ? "Broadcast" : symbol == "AllToAll" ? "AlltoAll" : symbol;
}

std::optional<uint64_t> collective_bytes(std::string_view operation, uint64_t elements, unsigned data_type,
                                         unsigned ranks)
{
    if (data_type >= type_bytes.size())
        return std::nullopt;
    const bool shares = std::ranges::find(counted_by_share, operation) != std::end(counted_by_share);
    if (shares && !ranks && elements)
        return std::nullopt; // the number of ranks is not known
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(elements, type_bytes.at(data_type) * uint64_t{shares ? ranks : 1}, &bytes))
        return std::nullopt;
    return bytes;
}

void CollectiveSums::add(const CollectiveSums& other)
{
    calls += other.calls;
    captured += other.captured;
    errors += other.errors;
    bytes += other.bytes;
    unsized += other.unsized;
    enqueue_ns += other.enqueue_ns;
    sizes.merge(other.sizes);
    enqueues.merge(other.enqueues);
    joined += other.joined;
    unjoined += other.unjoined;
    wait_ns += other.wait_ns;
    last += other.last;
    late_ns += other.late_ns;
    skews.merge(other.skews);
    for (const auto& [stack, ns] : other.late_from)
        late_from[stack] += ns;
}

} // namespace gpusnoop
