// SPDX-License-Identifier: Apache-2.0
#include "output/output_buffer.hpp"

#include "base/fd.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace gpusnoop {

void OutputBuffer::flush()
{
    using Clock = std::chrono::steady_clock;
    if (text.empty())
        return;
    const NonBlockingWriter out(STDOUT_FILENO);
    std::string_view rest = text;
    for (auto last_progress = Clock::now(); !rest.empty();) {
        const ssize_t written = out.write(rest);
        if (written < 0)
            fail(static_cast<int>(-written));
        rest.remove_prefix(static_cast<size_t>(written));
        if (written > 0)
            last_progress = Clock::now();
        else
            out.wait(std::chrono::milliseconds(50)); // interval between calls of gives_up_
        if (!rest.empty() && gives_up_ && gives_up_(Clock::now() - last_progress)) {
            const auto lines = std::ranges::count(rest, '\n');
            text.clear();
            throw OutputStalled(
                fmt::format("the reader of standard output has stopped reading: {} lines were not written, and later "
                            "results are not shown",
                            lines));
        }
    }
    text.clear();
}

void OutputBuffer::fail(int error)
{
    text.clear();
    struct stat st {};
    const bool hung_up = error == EIO && ::fstat(STDOUT_FILENO, &st) == 0 && S_ISCHR(st.st_mode); // a terminal
    if (error == EPIPE || hung_up)
        throw OutputClosed{};
    if (error == EBADF)
        throw Error("cannot write: standard output is closed, or open for reading only");
    throw Error("cannot write to standard output: " + errno_text(error));
}

} // namespace gpusnoop
