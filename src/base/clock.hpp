// SPDX-License-Identifier: Apache-2.0
// Clock readings, the kernel's estimate of the wall-clock error, and local time as text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

namespace gpusnoop {

inline uint64_t clock_ns(clockid_t clock)
{
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// CONFIG_HZ, derived from the resolution of the kernel's coarse clocks.
inline uint64_t jiffies_per_second()
{
    timespec jiffy{};
    clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy);
    return 1'000'000'000 / std::max<uint64_t>(static_cast<uint64_t>(jiffy.tv_nsec), 1'000'000);
}

// The kernel's own estimate of its wall-clock error, as maintained by chrony, ntpd or PTP.
struct ClockError {
    uint64_t max_us = 0; // upper bound of the error
    bool synchronized = false;
};
std::optional<ClockError> clock_error();

// Formatter for local time. Caches the text of the last second, so that the C library is not called for each event.
class LocalTime {
public:
    void append_clock(std::string& to, uint64_t wall_ns) // "10:00:00"
    {
        show_second(wall_ns);
        to.append(second_text_, 11, 8);
    }

    void append_iso(std::string& to, uint64_t wall_ns) // "2026-01-01T10:00:00.000000+00:00", RFC 3339
    {
        show_second(wall_ns);
        uint64_t microseconds = wall_ns % 1'000'000'000 / 1000;
        for (size_t place = micros_at + 6; place-- > micros_at; microseconds /= 10)
            second_text_[place] = static_cast<char>('0' + microseconds % 10);
        to.append(second_text_);
    }

private:
    void show_second(uint64_t wall_ns)
    {
        const uint64_t second = wall_ns / 1'000'000'000;
        if (second == second_ && !second_text_.empty())
            return;
        const auto time = static_cast<time_t>(second);
        tm local{};
        char text[64];
        ::localtime_r(&time, &local);
        second_text_.assign(text, ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.000000%z", &local));
        second_text_.insert(second_text_.size() - 2, ":"); // strftime's zone has no colon
        second_ = second;
    }

    static constexpr size_t micros_at = 20;

    uint64_t second_ = 0;
    std::string second_text_; // second_ as an ISO time; its microsecond digits are left over from the last append_iso()
};

} // namespace gpusnoop
