// SPDX-License-Identifier: Apache-2.0
#include "cudalaunch_events.hpp"

#include "probes.hpp"

#include <cstring>
#include <ctime>

namespace gpusnoop {
namespace {

// From CLOCK_MONOTONIC to the time of day.
uint64_t wall_offset_ns()
{
    timespec wall{}, monotonic{};
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    return static_cast<uint64_t>(wall.tv_sec - monotonic.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(wall.tv_nsec - monotonic.tv_nsec);
}

Cell dimensions(const __u32 (&xyz)[3])
{
    return Dim3{xyz[0], xyz[1], xyz[2]};
}

} // namespace

EventLines::EventLines(const Options& options, const Settings& settings, Processes& processes)
    : json_(options.json), latency_(settings.latency), results_(settings.latency || options.failed_only),
      wall_offset_ns_(wall_offset_ns()), who_(processes, options.extra_columns)
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
    const Column own[] = {
        {"LAYER", "layer", Unit::text, 7, settings.driver && settings.runtime, true},
        {"STREAM", "stream", Unit::hex, 14},
        {"GRID", "grid", Unit::dim3, 11},
        {"BLOCK", "block", Unit::dim3, 9},
        {"SMEM", "shared_memory_bytes", Unit::bytes, 6},
        {"LAT(us)", "latency_ns", Unit::ns_as_us, 8, latency_, latency_},
        {"RESULT", "result", Unit::text, 28, results_, results_},
        {"", "result_code", Unit::count, 0, false, results_},
        {"", "captured", Unit::count, 0, false},
        {"", "handle", Unit::hex, 0, false},
        {"", "kernel", Unit::text, 0, false},
        {"KERNEL", "", Unit::text, 6, true, false},
    };
    columns_.insert(columns_.end(), std::begin(own), std::end(own));
    row_.resize(columns_.size());
}

void EventLines::print(Output& output, const launch_event& event, const GroupKey& what,
                       const std::vector<std::string>& frames)
{
    fill(event, what);
    output.event(columns_, row_, frames);
}

void EventLines::fill(const launch_event& event, const GroupKey& what)
{
    const launch_key& key = event.key;
    if (!first_ns_)
        first_ns_ = event.time_ns;
    // Lines of several CPUs are not strictly in order: the first one printed need not be the earliest.
    const uint64_t since_first = event.time_ns > first_ns_ ? event.time_ns - first_ns_ : 0;
    const Library library = key.layer == LAYER_RUNTIME ? Library::runtime : Library::driver;
    const bool shaped = key.kind == KIND_LAUNCH && key.blocks != BUCKET_NONE;
    size_t i = 0;
    row_[i++] = event.time_ns + wall_offset_ns_;
    row_[i++] = json_ ? uint64_t{event.time_ns} : since_first;
    row_[i++] = uint64_t{key.image.pid};
    row_[i++] = uint64_t{event.tid};
    row_[i++] = std::string(event.comm, strnlen(event.comm, sizeof(event.comm)));
    i = who_.fill(row_, i, key.image, key.cgroups);
    row_[i++] = std::string(library == Library::runtime ? "runtime" : "driver");
    row_[i++] = uint64_t{key.stream};
    row_[i++] = shaped ? dimensions(event.shape.grid) : Cell();
    row_[i++] = shaped && key.threads != BUCKET_NONE ? dimensions(event.shape.block) : Cell();
    row_[i++] = shaped ? Cell(uint64_t{event.shape.smem}) : Cell();
    row_[i++] = latency_ ? Cell(uint64_t{event.duration_ns}) : Cell();
    row_[i++] = results_ ? Cell(key.result ? result_name(library, key.result) : std::string("ok")) : Cell();
    row_[i++] = int64_t{key.result};
    row_[i++] = uint64_t{key.recorded};
    row_[i++] = uint64_t{key.func};
    row_[i++] = what.kernel.empty() ? Cell() : Cell(what.kernel);
    row_[i++] = key.recorded ? launch_name(what) + " [captured]" : launch_name(what);
}

} // namespace gpusnoop
