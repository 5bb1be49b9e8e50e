// SPDX-License-Identifier: Apache-2.0
#include "run/arguments.hpp"

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
