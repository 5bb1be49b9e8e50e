// SPDX-License-Identifier: Apache-2.0
// What the two outputs share: the way to stdout and the time of day.
#pragma once

#include "error.hpp"
#include "output.hpp"

#include <cerrno>
#include <ctime>
#include <fmt/format.h>
#include <iterator>
#include <poll.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace gpusnoop {

// Lines on their way to stdout. The buffer is kept from line to line, so that none allocates.
class OutputBuffer {
public:
    std::string text;

    void line_ended()
    {
        text += '\n';
        if (text.size() > flush_above)
            flush();
    }

    // Everything or an exception: OutputClosed if the reader has gone, Error for the rest. Either way nothing is left,
    // so that a second try on the way out does not write half a line again. SIGPIPE must be ignored.
    void flush()
    {
        std::string_view rest = text;
        while (!rest.empty()) {
            ssize_t written = ::write(STDOUT_FILENO, rest.data(), rest.size());
            if (written >= 0) {
                rest.remove_prefix(static_cast<size_t>(written));
            } else if (errno == EAGAIN) { // whoever shares our stdout may have made it non-blocking
                pollfd ready{STDOUT_FILENO, POLLOUT, 0};
                ::poll(&ready, 1, -1);
            } else if (errno != EINTR) {
                const int error = errno;
                text.clear();
                if (error == EPIPE)
                    throw OutputClosed{};
                throw Error("cannot write to standard output: " + errno_text(error));
            }
        }
        text.clear();
    }

private:
    static constexpr size_t flush_above = 64 << 10;
};

// Local time. The C library is asked once per second shown, not once per event.
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
        to.append(second_text_, 0, 19);
        fmt::format_to(std::back_inserter(to), ".{:06}", wall_ns % 1'000'000'000 / 1000);
        to.append(second_text_, 19);
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
        second_text_.assign(text, ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &local));
        second_text_.insert(second_text_.size() - 2, ":"); // strftime's zone has no colon
        second_ = second;
    }

    uint64_t second_ = 0;
    std::string second_text_; // without the microseconds
};

// Losses matter to a person too, whatever stdout is used for.
inline void warn_of(std::span<const Loss> losses)
{
    for (const Loss& loss : losses)
        if (loss.count)
            warn(fmt::format("{} {}", loss.count, loss.text));
}

} // namespace gpusnoop
