// SPDX-License-Identifier: Apache-2.0
#include "tools/gpualloc/options.hpp"

#include "run/command_line.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gpusnoop::gpualloc {

void add_own_options(CommandLine& line, Settings& settings)
{
    Settings& s = settings;
    line.flag("--leaks", "what has not been freed, by call stack: bytes, count, greatest age", s.leaks);
    line.text("-o,--older", "AGE", "with --leaks: only what is at least this many seconds old (or 5m, 2h)",
              [&s](const std::string& text) {
                  using namespace std::chrono_literals;
                  s.older_than_ns = static_cast<uint64_t>(time_argument("an age (-o)", text, "s", 0ns, 87600h).count());
              });
    line.flag("--exited", "a line for each process that ends: what it still holds, by call stack", s.exited);
    line.number("--live-entries", "N", "allocations that can be tracked at once (1000000)", s.live_entries,
                {1024, 1 << 26});
    line.text("--nvml", "FILE", "NVML library to use (libnvidia-ml.so.1), or off", s.nvml_library);
}

void validate_options(Settings& settings, Options& options)
{
    Settings& s = settings;
    s.histogram_of = static_cast<Measure>(measure_number(s.measure, measures));
    if (s.leaks + s.exited + s.events + s.histogram() > 1)
        throw UsageError("choose one of --leaks, --exited, -e and -H");
    if (s.exited && options.draws_flames())
        throw UsageError("--exited has lines, not a table to draw flames of: --leaks has one");
    if ((s.leaks || s.exited) && (s.by || options.failed_only))
        throw UsageError("--leaks and --exited are by process and call stack: leave out --by and -x");
    if (s.older_than_ns && !s.leaks)
        throw UsageError("an age (-o) applies only to --leaks");
    if (s.histogram_of == Measure::lifetime && options.failed_only)
        throw UsageError("failed calls have no lifetime: leave out -x or -H");
    if (!s.leaks && !s.exited)
        check_fields(options, s.sort);
    else if (s.sort != "live_bytes")
        throw UsageError("--leaks and --exited are sorted by bytes held: leave out -s");
    else if (!options.columns.empty())
        throw UsageError("--leaks and --exited have columns of their own: leave out --columns");
    s.latency |= s.events || s.histogram_of == Measure::latency;
    s.view.vendor = false;              // of what is held, its address tells no API
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
