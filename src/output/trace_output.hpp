// SPDX-License-Identifier: Apache-2.0
// The lines of -e as a timeline, in a file beside what is shown.
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

// A line of -e as events of the Trace Event Format, which chrome://tracing, Perfetto and PyTorch's profiler have in
// common.

// Times in a trace are microseconds from here on: where PyTorch's profiler begins to count, too, so that its traces and
// ours can be put together. It rounds the time of day down to intervals of 7,889,238 s, a quarter of a year (kineto
// since 2024, ChromeTraceBaseTime, "baseTimeNanoseconds" in its files).
constexpr uint64_t trace_base_ns(uint64_t wall_ns)
{
    constexpr uint64_t interval_ns = 7'889'238'000'000'000;
    return wall_ns / interval_ns * interval_ns;
}

class TraceEvents {
public:
    // clock_ns: what CLOCK_MONOTONIC showed at wall_ns.
    TraceEvents(std::string_view tool, uint64_t wall_ns, uint64_t clock_ns);

    uint64_t base_ns() const { return base_ns_; }

    // Appends all that the line is, each event on a line of its own that ends in a comma. False where it has no time of
    // its own, or is of no thread: then nothing.
    bool append(std::string& to, std::span<const Column> columns, const Row& row, const ExtraLines& below);

    // Of no thread: a mark across all of them, at this time of day.
    void append_mark(std::string& to, std::string_view text, uint64_t wall_ns) const;

private:
    void name_tracks(std::string& to, std::span<const Column> columns, const Row& row, uint64_t pid, uint64_t tid);

    void append_arguments(std::string& to, std::span<const Column> columns, const Row& row, const ExtraLines& below);
    void append_list(const ExtraLines& below);

    std::string tool_;
    uint64_t wall_ns_, clock_ns_, base_ns_;
    std::map<std::pair<uint64_t, uint64_t>, std::string> named_; // tracks, by process and thread; processes: thread 0
    uint64_t number_ = 0;                                        // of what overlaps
    std::string arguments_;
    JsonFields fields_{arguments_};
};

// Packed where the name ends in ".gz". What has been written is a trace at any time: its list needs no end. Throws
// Error where it cannot be written; check() does where it is not whole.
SideOutput make_trace_output(const std::string& path);

} // namespace gpusnoop
