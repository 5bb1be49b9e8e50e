// SPDX-License-Identifier: Apache-2.0
#include "gpualloc_options.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gpusnoop::gpualloc {

void add_own_options(CLI::App& app, Settings& settings)
{
    Settings& s = settings;
    app.add_flag("--leaks", s.leaks, "what has not been freed, by call stack: bytes, count, age of the oldest");
    app.add_option_function<double>(
           "-o,--older",
           [&s](double seconds) {
               if (!(seconds >= 0 && seconds <= 1e9)) // a NaN is neither
                   throw CLI::ValidationError("", "an age (-o) is a number of seconds, at most 1e9");
               s.older_than_ns = static_cast<uint64_t>(seconds * 1e9);
           },
           "with --leaks: only allocations that are so many seconds old")
        ->type_name("AGE");
    app.add_flag("--exited", s.exited, "a line for each process that ends, with what it still holds, by call stack");
    app.add_option("--live-entries", s.live_entries, "allocations that are followed at once (1000000)")
        ->check(CLI::Range(1024, 1 << 26).description(""))
        ->type_name("N");
    app.add_option("--nvml", s.nvml_library, "library to ask for NVML's figures (libnvidia-ml.so.1), or off")
        ->type_name("FILE");
}

void settle_options(Settings& settings, Options& options)
{
    Settings& s = settings;
    constexpr std::pair<std::string_view, Measure> measures[] = {
        {"", Measure::none}, {"size", Measure::size}, {"latency", Measure::latency}, {"lifetime", Measure::lifetime}};
    auto measure = std::ranges::find(measures, s.measure, &std::pair<std::string_view, Measure>::first);
    if (measure == std::end(measures))
        throw UsageError(fmt::format("-H takes size, latency or lifetime, not '{}'", s.measure));
    s.histogram_of = measure->second;
    if (s.leaks + s.exited + s.events + s.histogram() > 1)
        throw UsageError("choose one of --leaks, --exited, -e and -H");
    if ((s.leaks || s.exited) && (s.by || options.failed_only))
        throw UsageError("--leaks and --exited are by process and call stack: leave out --by and -x");
    if (s.older_than_ns && !s.leaks)
        throw UsageError("an age (-o) is for --leaks");
    if (s.histogram_of == Measure::lifetime && options.failed_only)
        throw UsageError("what failed has no lifetime: leave out -x or -H");
    if (!s.leaks && !s.exited)
        check_sort(s.sort);
    else if (s.sort != "live_bytes")
        throw UsageError("--leaks and --exited are sorted by what is held: leave out -s");
    s.latency |= s.events || s.histogram_of == Measure::latency;
    s.view.layer = options.failed_only; // an allocation at one layer may be freed at the other
    s.operation = s.histogram_of == Measure::latency || options.failed_only;
    CallView& view = s.view;
    const Dimension own[] = {{"kind", &s.holding}, {"size", &s.size}, {"stack", &view.stack}};
    if (s.by)
        parse_by(*s.by, view, own);
    else
        view.who.pid |= !s.histogram();
    if (view.stream)
        throw UsageError("memory belongs to no stream: leave it out of --by");
    if (view.stack && s.histogram())
        throw UsageError("a histogram has no stacks: leave out --by stack or -H");
    view.stack |= s.leaks || s.exited;
    options.user_stacks |= view.stack;
    view.who.pid |= view.stack;
}

} // namespace gpusnoop::gpualloc
