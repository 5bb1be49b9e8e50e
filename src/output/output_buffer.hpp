// SPDX-License-Identifier: Apache-2.0
// What the outputs share: lines on their way to where they go, stdout for most.
#pragma once

#include "base/error.hpp"
#include "rows/output.hpp"

#include <fmt/format.h>
#include <memory>
#include <span>
#include <string>

namespace gpusnoop {

// The buffer is kept from line to line, so that none allocates.
class LineBuffer {
public:
    LineBuffer() = default;
    virtual ~LineBuffer() = default;
    LineBuffer(const LineBuffer&) = delete;
    LineBuffer& operator=(const LineBuffer&) = delete;

    std::string text;

    void line_ended()
    {
        text += '\n';
        if (text.size() > flush_above)
            flush();
    }

    // Hands on what there is. Afterwards nothing is left.
    virtual void flush() = 0;

private:
    static constexpr size_t flush_above = 64 << 10;
};

// Lines on their way to stdout.
class OutputBuffer final : public LineBuffer {
public:
    explicit OutputBuffer(const Output::GivesUp& gives_up) : gives_up_(gives_up) {}

    // Everything or an exception: OutputClosed if the reader has gone, OutputStalled if there is one who does not read,
    // Error for the rest. Either way nothing is left, so that a second try on the way out does not write half a line
    // again. SIGPIPE must be ignored.
    void flush() override;

private:
    [[noreturn]] void fail(int error);

    const Output::GivesUp& gives_up_;
};

// What make_json_output() makes, going there in place of stdout, beside another output.
std::unique_ptr<Output> make_json_output(RunIdentity run, std::unique_ptr<LineBuffer> to);

// Losses matter to a person too, whatever stdout is used for.
inline void warn_of(std::span<const Loss> losses)
{
    for (const Loss& loss : losses)
        if (loss.count)
            warn(fmt::format("{} {}", loss.count, loss.text));
}

} // namespace gpusnoop
