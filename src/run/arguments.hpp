// SPDX-License-Identifier: Apache-2.0
// Numbers and times on a command line: all of the text is one, or a sentence says what it should be.
#pragma once

#include "base/options.hpp"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace gpusnoop {

// Throws UsageError, as all of these do.
template<class T>
T number_argument(std::string_view what, std::string_view text, T least, T most)
{
    T value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() ||
        !(value >= least && value <= most)) // a NaN is neither
        throw UsageError(fmt::format("{} must be a number from {} to {}, not '{}'", what, least, most, text));
    return value;
}

// Of bytes: "500M", "1.5G".
uint64_t size_argument(std::string_view what, std::string_view text, uint64_t least, uint64_t most);

// Of time. A number has one of them behind it (250ms, 1.5m), or is one of those that are usual.
struct TimeUnit {
    std::string_view name;
    std::chrono::nanoseconds length;
};
inline constexpr TimeUnit time_units[] = {
    {"ns", std::chrono::nanoseconds(1)}, {"us", std::chrono::microseconds(1)}, {"ms", std::chrono::milliseconds(1)},
    {"s", std::chrono::seconds(1)},      {"m", std::chrono::minutes(1)},       {"h", std::chrono::hours(1)},
    {"d", std::chrono::hours(24)},
};

// In the largest unit that has a whole number of it: "10ms", "7d".
std::string in_words(std::chrono::nanoseconds time);

std::chrono::nanoseconds time_argument(std::string_view what, std::string_view text, std::string_view usual,
                                       std::chrono::nanoseconds least, std::chrono::nanoseconds most);

} // namespace gpusnoop
