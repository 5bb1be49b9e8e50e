// SPDX-License-Identifier: Apache-2.0
// Output of event lines (-e) to a timeline file (--trace).
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

// Base of the timestamps in a trace: the time of day, rounded down to a multiple of 7,889,238 s (a quarter of a year).
// PyTorch's profiler uses the same base, so that both traces can be merged (ChromeTraceBaseTime of kineto since 2024,
// "baseTimeNanoseconds" in its files).
constexpr uint64_t trace_base_ns(uint64_t wall_ns)
{
    constexpr uint64_t interval_ns = 7'889'238'000'000'000;
    return wall_ns / interval_ns * interval_ns;
}

// Converts event lines (-e) to the Trace Event Format of chrome://tracing, Perfetto and PyTorch's profiler.
class TraceEvents {
public:
    // wall_ns, clock_ns: the same moment as time of day and on CLOCK_MONOTONIC.
    TraceEvents(std::string_view tool, uint64_t wall_ns, uint64_t clock_ns);

    uint64_t base_ns() const { return base_ns_; }

    // Appends the events of an event line as JSON, one per line, each followed by a comma. Returns false, without
    // output, if the event line has no time or no thread.
    bool append(std::string& to, std::span<const Column> columns, const Row& row, const ExtraLines& below);

    // Appends an instant event that is shown across all threads.
    void append_mark(std::string& to, std::string_view text, uint64_t wall_ns) const;

private:
    void name_tracks(std::string& to, std::span<const Column> columns, const Row& row, uint64_t pid, uint64_t tid);

    void append_arguments(std::string& to, std::span<const Column> columns, const Row& row, const ExtraLines& below);
    void append_list(const ExtraLines& below);

    std::string tool_;
    uint64_t wall_ns_, clock_ns_, base_ns_;
    std::map<std::pair<uint64_t, uint64_t>, std::string>
        named_;             // (pid, tid) -> name written to the trace; tid 0 is used for the process itself
    uint64_t async_id_ = 0; // id of the last asynchronous event
    std::string arguments_;
    JsonFields fields_{arguments_};
};

// The file is compressed if its name ends in ".gz". It can be loaded even while it is being written, because the format
// does not require the closing bracket of the JSON array. Throws Error if the file cannot be opened; check() throws if
// the file is incomplete.
SideOutput make_trace_output(const std::string& path);

} // namespace gpusnoop
