// SPDX-License-Identifier: Apache-2.0
#include "proc/thread_state.hpp"

#include "base/read_text.hpp"

#include <charconv>
#include <fmt/format.h>

namespace gpusnoop {
namespace {

// Behind the key at the begin of a line; empty: there is no such line. A thread's name, which comes first, has no
// newline: the kernel escapes it.
std::string_view value_of(std::string_view status, std::string_view key)
{
    const size_t at = status.find(key);
    return at == std::string_view::npos ? std::string_view() : status.substr(at + key.size());
}

} // namespace

ThreadState parse_thread_state(std::string_view status)
{
    ThreadState found;
    if (const std::string_view state = value_of(status, "\nState:\t"); !state.empty())
        found.state = state.front();
    const std::string_view tracer = value_of(status, "\nTracerPid:\t");
    std::from_chars(tracer.data(), tracer.data() + tracer.size(), found.tracer);
    return found;
}

ThreadState thread_state(pid_t pid, pid_t tid)
{
    constexpr size_t max = 16 << 10;
    return parse_thread_state(read_text(fmt::format("/proc/{}/task/{}/status", pid, tid), max).value_or(""));
}

} // namespace gpusnoop
