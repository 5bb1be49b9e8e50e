// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/options.hpp"

#include "base/text.hpp"
#include "output/metrics.hpp"
#include "run/shared_options.hpp"
#include "tools/gpuspend/dcgm.hpp"

#include <fmt/format.h>
#include <utility>

namespace gpusnoop::gpuspend {

void add_own_options(CommandLine& line, Settings& settings)
{
    Settings& s = settings;
    const std::pair<const char*, const char*> refused[] = {
        {"--failed", "-x is for the other tools; gpuspend does not show single calls"},
        {"--user-stacks", "-U is for the other tools; gpuspend has no call stacks"},
        {"--per-process", "-P is for histograms (-H) of the other tools; use --by pid for a row per process"},
        {"--per-thread", "-L is for histograms (-H) of the other tools; threads do not hold GPUs"},
        {"--milliseconds", "-m is for histograms (-H) of the other tools"},
        {"--nanoseconds", "-N is for histograms (-H) of the other tools"},
        {"--replay", "--replay is for the other tools; use --state to keep gpuspend's totals"},
        {"--at", "--at is for --replay, which gpuspend does not have"},
        {"--extra-columns", "-X is for the other tools; gpuspend always shows the owner"},
    };
    for (const auto& [option, why] : refused)
        line.refuse(option, why);
    line.refuse("--trace", "--trace is for lines of single calls (-e), which gpuspend does not have");
    refuse_flame_options(line, "is about call stacks, which gpuspend does not have");
    line.text("--by", "WHAT[,WHAT]", fmt::format("group rows by {}, or several (pod)", View::names), s.by);
    line.text("--split", "HOW", "divide the time of a shared GPU by launches, busy or memory (launches)", s.split_by);
    line.flag("--cheap", "entry probes only: launches and copies, no waits and no memory", s.cheap);
    line.text("-s,--sort", "COLUMN", "column to sort by (device_time_ns)", s.sort);
    line.text("--prices", "FILE",
              "prices per GPU hour: lines of MODEL_GLOB,PRICE,CURRENCY, ..., or OpenCost's custom pricing", s.prices);
    line.text("--teams", "FILE",
              "assigns rows to teams; lines are TEAM,KIND,GLOB, where KIND is namespace, pod, user, ...", s.teams);
    line.text("--state", "FILE", "load and save totals in FILE, so that they continue across runs", s.state);
    line.text("--dcgm", "URL|FILE", "metrics of dcgm-exporter, for utilization counters that NVML lacks", s.dcgm);
    line.flag("--csv", "CSV for billing, with FOCUS 1.3 column names", s.csv);
    add_metrics_options(line, s.metrics);
    line.text("--nvml", "FILE", "NVML library to use (libnvidia-ml.so.1), or off", s.nvml_library);
}

void validate_options(Settings& settings, const Options& options)
{
    Settings& s = settings;
    constexpr std::string_view splits = "launches, busy or memory";
    if (s.split_by != "launches" && s.split_by != "busy" && s.split_by != "memory")
        throw UsageError(fmt::format("--split takes {}, not '{}'{}", splits, s.split_by,
                                     suggestion(s.split_by, std::string(splits))));
    s.split = s.split_by == "busy" ? SplitBy::busy : s.split_by == "memory" ? SplitBy::memory : SplitBy::launches;
    if (s.split == SplitBy::memory && s.cheap)
        throw UsageError("--split memory needs probes that --cheap leaves out: choose one");
    if (s.csv && options.json)
        throw UsageError("choose --csv or --json, not both");
    if (s.csv && !options.columns.empty())
        throw UsageError("--columns is for tables: leave out --csv or --columns");
    if (s.metrics.wanted() && (s.csv || options.json || !options.columns.empty()))
        throw UsageError("--textfile and --listen export metrics; they cannot be combined with --csv, -j, --columns");
    if (s.metrics.wanted() && !s.state.empty())
        throw UsageError("--textfile and --listen count from the start of the run, and Prometheus handles restarts: "
                         "leave out --state");
    if (s.dcgm.find("://") != std::string::npos)
        (void)http_request("--dcgm", s.dcgm, 0);
    s.rows.parse(s.by.value_or(s.metrics.wanted() ? "namespace,pod,container" : "pod"));
    check_fields(options, s.sort);
}

} // namespace gpusnoop::gpuspend
