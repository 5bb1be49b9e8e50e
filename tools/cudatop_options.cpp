// SPDX-License-Identifier: Apache-2.0
#include "cudatop_options.hpp"

#include <fmt/format.h>
#include <string_view>

namespace gpusnoop::cudatop {

void add_own_options(CLI::App& app, Settings& settings)
{
    Settings& s = settings;
    s.sort = "launches_per_second";
    app.add_flag("-b,--batch", s.batch, "tables one below the other, for a log or a pipe; no screen");
    app.add_option("--by", s.by, fmt::format("rows by kernel, device, {}, or several (pid)", WhoView::names))
        ->type_name("WHAT[,WHAT]");
    app.add_option("-s,--sort", s.sort, "column to sort by (LAUNCH/s)")->type_name("COLUMN");
    app.add_option("--columns", s.columns, "these columns alone; or more (+NAME) or less (-NAME) than the usual ones")
        ->delimiter(',')
        ->type_name("NAME[,NAME]")
        ->allow_extra_args(false); // what follows is the interval
    app.add_option("--filter", s.filter, "only rows with this text in them")->type_name("TEXT");
    app.add_flag("--tree", s.tree, "rows below their pods");
    app.add_flag("-l,--latency", s.latency, "measure launch calls and copies, and count their errors: return probes");
    app.add_flag("--cheap", s.cheap, "entry probes only: launches and copies, nothing of waits, memory and errors");
    app.add_option("--names", s.names, "kernel names: short, full or base (short)")->type_name("HOW");
    app.add_flag("--no-cache", s.no_cache, "neither read nor keep on disk what libraries register");
    app.add_option("--live-entries", s.live_entries, "allocations that can be followed at once (1000000)")
        ->type_name("N")
        ->check(CLI::Range(1024, 100'000'000));
    app.add_option("--nvml", s.nvml_library, "library to ask for the GPUs' own figures, or off (libnvidia-ml.so.1)")
        ->type_name("FILE");
}

void settle_options(Settings& settings, const Options& options)
{
    Settings& s = settings;
    if (options.failed_only || options.user_stacks)
        throw UsageError(
            "-x and -U are of the other tools: cudatop shows errors as a column, and stacks of one process "
            "when its row is opened");
    if (s.latency && s.cheap)
        throw UsageError("--latency needs return probes, and --cheap has none: choose one");
    if (s.names != "full" && s.names != "short" && s.names != "base")
        throw UsageError(fmt::format("--names takes short, full or base, not '{}'", s.names));
    s.sort = column_key(s.sort);
    s.ascending = is_ascending(s.sort);
    for (const std::string& name : s.columns)
        column_key(std::string_view(name).substr(name.starts_with('+') || name.starts_with('-') ? 1 : 0));
    s.choose_rows(s.by.value_or("pid"));
}

} // namespace gpusnoop::cudatop
