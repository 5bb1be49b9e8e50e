// SPDX-License-Identifier: Apache-2.0
// What the two outputs share: the way to stdout.
#pragma once

#include "error.hpp"
#include "output.hpp"

#include <cerrno>
#include <fmt/format.h>
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

// Losses matter to a person too, whatever stdout is used for.
inline void warn_of(std::span<const Loss> losses)
{
    for (const Loss& loss : losses)
        if (loss.count)
            warn(fmt::format("{} {}", loss.count, loss.text));
}

} // namespace gpusnoop
