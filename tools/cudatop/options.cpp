// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/options.hpp"

#include "output/metrics.hpp"
#include "run/command_line.hpp"
#include "run/shared_options.hpp"

#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace gpusnoop::cudatop {

void add_own_options(CommandLine& line, Settings& settings)
{
    Settings& s = settings;
    const std::pair<const char*, const char*> refused[] = {
        {"--failed", "-x belongs to the other tools: cudatop shows errors as a column (ERR/s)"},
        {"--user-stacks", "-U belongs to the other tools: cudatop shows the stacks of a row that is opened (Enter)"},
        {"--per-process",
         "-P is for histograms (-H) of the other tools; cudatop shows histograms in an opened row (Enter)"},
        {"--per-thread",
         "-L is for histograms (-H) of the other tools; cudatop shows histograms in an opened row (Enter)"},
        {"--milliseconds", "-m is for histograms (-H) of the other tools"},
        {"--nanoseconds", "-N is for histograms (-H) of the other tools"},
    };
    for (const auto& [option, why] : refused)
        line.refuse(option, why);
    line.refuse("--trace", "--trace exports single calls, which only the other tools record (-e)");
    refuse_flame_options(line, "needs call stacks: use one of the other tools, as in cudalaunch -p PID --svg FILE");
    line.flag("-b,--batch", "print tables, for a log or a pipe; no screen", s.batch);
    line.text("--by", "WHAT[,WHAT]", fmt::format("rows by kernel, device, {}, or several (pid)", WhoView::names), s.by);
    line.text("-s,--sort", "COLUMN", "column to sort by (TROUBLE, then LAUNCH/s)", s.sort_by);
    line.text("--filter", "TEXT", "only rows that contain this text", s.filter);
    line.flag("--why", "after 5 s, print what is wrong with which process, and what to type next", s.why);
    line.flag("--tree", "show rows below their pods", s.tree);
    line.flag("-l,--latency", "measure launch calls and copies, and count their errors (slower)", s.latency);
    line.flag("--cheap", "entry probes only: launches and copies, no waits, memory or errors", s.cheap);
    add_name_options(line, s.names);
    line.number("--live-entries", "N", "allocations that can be tracked at once (1000000)", s.live_entries,
                {1024, 100'000'000});
    line.flag("--no-config", "do not load or save screen settings", s.no_config);
    add_metrics_options(line, s.metrics);
    line.text("--nvml", "FILE", "NVML library to use (libnvidia-ml.so.1), or off", s.nvml_library);
}

void validate_options(Settings& settings, const Options& options)
{
    Settings& s = settings;
    if (s.latency && s.cheap)
        throw UsageError("--latency needs return probes, and --cheap has none: choose one");
    if (s.why && options.interval)
        throw UsageError("--why prints one report at the end: leave out the interval (-d 10s watches for longer)");
    if (!options.replay.empty() && (s.by || options.interval))
        throw UsageError("--replay shows the recorded rows and intervals: leave out --by and the interval");
    if (s.metrics.wanted() && (options.json || s.why || s.tree || s.sort_by || !options.columns.empty()))
        throw UsageError(
            "--textfile and --listen export metrics, not tables: leave out -j, --why, --tree, -s, --columns");
    check_name_options(s.names);
    const Preferences& preferences = s.preferences;
    if (!s.sort_by && preferences.order) {
        s.sort = preferences.order->column;
        s.ascending = preferences.order->ascending;
    } else {
        s.sort = column_key(s.sort_by.value_or("TROUBLE"));
        s.ascending = is_ascending(s.sort);
    }
    s.tree |= preferences.tree.value_or(false);
    check_columns(options.columns, columns_on_offer(), {});
    s.choose_rows(s.by.value_or(preferences.by.value_or(s.metrics.wanted() ? "namespace,pod,container" : "pid")));
}

} // namespace gpusnoop::cudatop
