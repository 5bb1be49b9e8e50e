// SPDX-License-Identifier: Apache-2.0
#include "run/arguments.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <iterator>

namespace gpusnoop {

std::string in_words(std::chrono::nanoseconds time)
{
    for (size_t i = std::size(time_units); i-- > 0;)
        if (time.count() && time % time_units[i].length == std::chrono::nanoseconds::zero())
            return fmt::format("{}{}", time / time_units[i].length, time_units[i].name);
    return "0";
}

uint64_t size_argument(std::string_view what, std::string_view text, uint64_t least, uint64_t most)
{
    constexpr std::string_view units = "KMGT";
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    if (error == std::errc() && unit.size() <= 1 && (unit.empty() || units.find(unit.front()) != units.npos)) {
        const double bytes =
            std::ldexp(value, unit.empty() ? 0 : 10 * (static_cast<int>(units.find(unit.front())) + 1));
        if (bytes >= static_cast<double>(least) && bytes <= static_cast<double>(most)) // a NaN is neither
            return static_cast<uint64_t>(bytes);
    }
    throw UsageError(fmt::format("{} must be a number of bytes from {} to {}, as 500M or 2G, not '{}'", what,
                                 human_bytes(least), human_bytes(most), text));
}

std::chrono::nanoseconds time_argument(std::string_view what, std::string_view text, std::string_view usual,
                                       std::chrono::nanoseconds least, std::chrono::nanoseconds most)
{
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    if (unit.empty())
        unit = usual;
    const auto* found = std::ranges::find(time_units, unit, &TimeUnit::name);
    if (error == std::errc() && found != std::end(time_units)) {
        const double ns = value * static_cast<double>(found->length.count());
        if (ns >= static_cast<double>(least.count()) && ns <= static_cast<double>(most.count())) // a NaN is neither
            return std::chrono::nanoseconds(std::llround(ns));
    }
    throw UsageError(fmt::format("{} must be a time from {} to {}: a number of {}, or one with its unit, as 250ms or "
                                 "5m; not '{}'",
                                 what, in_words(least), in_words(most), usual == "us" ? "microseconds" : "seconds",
                                 text));
}

} // namespace gpusnoop
