// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/collective_words.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <string_view>

namespace gpusnoop {
namespace {

constexpr std::string_view types[] = {"int8",    "uint8",   "int32",   "uint32",   "int64",      "uint64",
                                      "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};
constexpr std::string_view reductions[] = {"sum", "product", "max", "min", "average", "a reduction of its own"};
constexpr std::string_view reducing[] = {"AllReduce", "Reduce", "ReduceScatter", "AllReduceWithBias"};
constexpr std::string_view rooted[] = {"Broadcast", "Reduce", "Gather", "Scatter"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name)
{
    return std::ranges::find(names, name) != names.end();
}

} // namespace

std::string ranks_in_words(std::span<const unsigned> ranks)
{
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (size_t i = 0, end = 0; i < ranks.size(); i = end) {
        for (end = i + 1; end < ranks.size() && ranks[end] == ranks[end - 1] + 1;)
            end++;
        text += fmt::format("{}{}", i ? "," : "", ranks[i]);
        if (end > i + 1)
            text += fmt::format("-{}", ranks[end - 1]);
    }
    return text;
}

std::string collective_in_words(const Collectives::Of& of, const Collectives::Came& came)
{
    std::string text(came.operation);
    if (came.bytes)
        text += fmt::format(" of {}", human_bytes(*came.bytes));
    if (of.number)
        text += fmt::format(" (collective {})", *of.number);
    return text;
}

std::string meaning_in_words(const Collectives::Came& came)
{
    std::string text = fmt::format("{} of {} ", came.operation, came.elements);
    text += came.type < std::size(types) ? types[came.type] : fmt::format("of type {}", came.type);
    if (is_one_of(reducing, came.operation))
        text += fmt::format(", {}", reductions[std::min<size_t>(came.reduction, std::size(reductions) - 1)]);
    if (is_one_of(rooted, came.operation))
        text += fmt::format(", root {}", came.root);
    return text;
}

std::string seconds_in_words(uint64_t ns)
{
    return fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9);
}

} // namespace gpusnoop
