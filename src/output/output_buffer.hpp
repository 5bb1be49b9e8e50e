// SPDX-License-Identifier: Apache-2.0
// Line buffers of outputs.
#pragma once

#include "base/error.hpp"
#include "rows/output.hpp"

#include <fmt/format.h>
#include <memory>
#include <span>
#include <string>

namespace gpusnoop {

// Collects lines, and flushes them when they exceed 64 KiB. The buffer is reused, so that adding a line does not
// allocate memory.
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

    // Writes and clears the buffer.
    virtual void flush() = 0;

private:
    static constexpr size_t flush_above = 64 << 10;
};

// Buffer for stdout.
class OutputBuffer final : public LineBuffer {
public:
    explicit OutputBuffer(const Output::GivesUp& gives_up) : gives_up_(gives_up) {}

    // Writes the whole buffer to stdout. Throws OutputClosed if the reader has closed the pipe, OutputStalled if the
    // reader has stopped reading, and Error for other failures. Also clears the buffer after a failure, so that a retry
    // at exit does not repeat half a line. The process must ignore SIGPIPE.
    void flush() override;

private:
    [[noreturn]] void fail(int error);

    const Output::GivesUp& gives_up_;
};

// Like make_json_output(run), but writes to the buffer `to` instead of stdout. Used in addition to the normal output.
std::unique_ptr<Output> make_json_output(RunIdentity run, std::unique_ptr<LineBuffer> to);

// Prints losses on stderr, so that users see them even if stdout is piped to a program.
inline void warn_of(std::span<const Loss> losses)
{
    for (const Loss& loss : losses)
        if (loss.count)
            warn(fmt::format("{} {}", loss.count, loss.text));
}

} // namespace gpusnoop
