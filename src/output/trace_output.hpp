// SPDX-License-Identifier: Apache-2.0
// --trace: writes the lines of -e to a timeline file.
#pragma once

#include "output/json_fields.hpp"
#include "output/side_outputs.hpp"
#include "rows/output.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace gpusnoop {

// Base of the timestamps in a trace. PyTorch's profiler uses the same base, so that both traces can be merged: the time
// of day rounded down to a multiple of 7,889,238 s, a quarter of a year (kineto since 2024, ChromeTraceBaseTime,
// "baseTimeNanoseconds" in its files).
constexpr uint64_t trace_base_ns(uint64_t wall_ns)
{
    constexpr uint64_t interval_ns = 7'889'238'000'000'000;
    return wall_ns / interval_ns * interval_ns;
}

// Converts lines of -e to the Trace Event Format, which chrome://tracing, Perfetto and PyTorch's profiler share.
class TraceEvents {
public:
    // clock_ns: CLOCK_MONOTONIC at wall_ns.
    TraceEvents(std::string_view tool, uint64_t wall_ns, uint64_t clock_ns);

    uint64_t base_ns() const { return base_ns_; }

    // Appends the events of a line, each on its own line ending in a comma. False, without output, if the line has no
    // time or no thread.
    bool append(std::string& to, std::span<const Column> columns, const Row& row, const ExtraLines& below);

    // Appends a global instant event across all threads.
    void append_mark(std::string& to, std::string_view text, uint64_t wall_ns) const;

private:
    void name_tracks(std::string& to, std::span<const Column> columns, const Row& row, uint64_t pid, uint64_t tid);

    void append_arguments(std::string& to, std::span<const Column> columns, const Row& row, const ExtraLines& below);
    void append_list(const ExtraLines& below);

    std::string tool_;
    uint64_t wall_ns_, clock_ns_, base_ns_;
    std::map<std::pair<uint64_t, uint64_t>, std::string>
        named_;             // process, thread (0: the process) -> its name in the trace
    uint64_t async_id_ = 0; // of the last asynchronous event
    std::string arguments_;
    JsonFields fields_{arguments_};
};

// Compressed if the name ends in ".gz". The file is valid at any time, as its list may lack the end. Throws Error if it
// cannot be opened; check() throws if it is incomplete.
SideOutput make_trace_output(const std::string& path);

} // namespace gpusnoop
