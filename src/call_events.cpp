// SPDX-License-Identifier: Apache-2.0
#include "call_events.hpp"

#include "call_fields.hpp"
#include "clock.hpp"

#include <cstring>

namespace gpusnoop {

CallEvents::CallEvents(const Options& options, const CallSettings& settings, Processes& processes,
                       std::span<const Probe> probes, std::initializer_list<Column> middle,
                       std::initializer_list<Column> last)
    : json_(options.json), of_functions_(settings.of_functions), latency_(settings.latency),
      results_(settings.latency || options.failed_only),
      wall_offset_ns_(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC)), who_(processes, options.extra_columns),
      probes_(probes)
{
    // A column that this run cannot fill is not there.
    columns_ = {
        {"TIME", "", Unit::time, 8, options.timestamps, false},
        {"TIME(s)", "time_ns", Unit::seconds, 11},
        {"PID", "pid", Unit::count, 7},
        {"TID", "tid", Unit::count, 7},
        {"COMM", "comm", Unit::text, 15},
    };
    who_.add_columns(columns_);
    if (of_functions_) {
        columns_.push_back({"LAYER", "layer", Unit::text, 7, settings.driver && settings.runtime, true});
        columns_.push_back({"STREAM", "stream", Unit::hex, 14});
    }
    columns_.insert(columns_.end(), middle);
    columns_.push_back({"LAT(us)", "latency_ns", Unit::ns_as_us, 8, latency_, latency_});
    if (of_functions_) {
        columns_.push_back({"RESULT", "result", Unit::text, 28, results_, results_});
        columns_.push_back({"", "result_code", Unit::count, 0, false, results_});
        columns_.push_back({"", "captured", Unit::count, 0, false});
        columns_.push_back({"", "function", Unit::text, 0, false});
    }
    columns_.insert(columns_.end(), last);
    row_.resize(columns_.size());
}

void CallEvents::print(Output& output, const call_event& event, Cells middle, Cells last,
                       std::span<const std::string> frames)
{
    fill(event, middle, last);
    output.event(columns_, row_, frames);
}

void CallEvents::fill(const call_event& event, Cells middle, Cells last)
{
    const call_key& key = event.key;
    if (!first_ns_)
        first_ns_ = event.time_ns;
    // Lines of several CPUs are not strictly in order: the first one printed need not be the earliest.
    const uint64_t since_first = event.time_ns > first_ns_ ? event.time_ns - first_ns_ : 0;
    size_t i = 0;
    row_[i++] = event.time_ns + wall_offset_ns_;
    row_[i++] = json_ ? uint64_t{event.time_ns} : since_first;
    row_[i++] = uint64_t{key.image.pid};
    row_[i++] = uint64_t{event.tid};
    row_[i++] = std::string(event.comm, strnlen(event.comm, sizeof(event.comm)));
    i = who_.fill(row_, i, key.image, key.cgroups);
    if (of_functions_) {
        row_[i++] = layer_name(key.layer);
        row_[i++] = uint64_t{key.stream};
    }
    for (const Cell& cell : middle)
        row_[i++] = cell;
    row_[i++] = latency_ ? Cell(uint64_t{event.duration_ns}) : Cell();
    if (of_functions_) {
        row_[i++] =
            results_ ? Cell(key.result ? result_name(library_of(key.layer), key.result) : std::string("ok")) : Cell();
        row_[i++] = int64_t{key.result};
        row_[i++] = uint64_t{key.flags & CALL_RECORDED ? 1U : 0U};
        row_[i++] = function_name(probes_, key.function);
    }
    for (const Cell& cell : last)
        row_[i++] = cell;
}

} // namespace gpusnoop
