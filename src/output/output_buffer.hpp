// SPDX-License-Identifier: Apache-2.0
// What the two outputs share: the way to stdout.
#pragma once

#include "output/output.hpp"
#include "util/error.hpp"

#include <fmt/format.h>
#include <span>
#include <string>

namespace gpusnoop {

// Lines on their way to stdout. The buffer is kept from line to line, so that none allocates.
class OutputBuffer {
public:
    explicit OutputBuffer(const Output::GivesUp& gives_up) : gives_up_(gives_up) {}

    std::string text;

    void line_ended()
    {
        text += '\n';
        if (text.size() > flush_above)
            flush();
    }

    // Everything or an exception: OutputClosed if the reader has gone, OutputStalled if there is one who does not read,
    // Error for the rest. Either way nothing is left, so that a second try on the way out does not write half a line
    // again. SIGPIPE must be ignored.
    void flush();

private:
    [[noreturn]] void fail(int error);

    static constexpr size_t flush_above = 64 << 10;
    const Output::GivesUp& gives_up_;
};

// Losses matter to a person too, whatever stdout is used for.
inline void warn_of(std::span<const Loss> losses)
{
    for (const Loss& loss : losses)
        if (loss.count)
            warn(fmt::format("{} {}", loss.count, loss.text));
}

} // namespace gpusnoop
