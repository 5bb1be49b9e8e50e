// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include "run/command_line.hpp"
#include "run/shared_options.hpp"

#include <fmt/format.h>
#include <string_view>

namespace gpusnoop::cudatop {

void add_own_options(CommandLine& line, Settings& settings)
{
    Settings& s = settings;
    s.sort = "TROUBLE";
    line.flag("-b,--batch", "tables one below the other, for a log or a pipe; no screen", s.batch);
    line.text("--by", "WHAT[,WHAT]", fmt::format("rows by kernel, device, {}, or several (pid)", WhoView::names), s.by);
    line.text("-s,--sort", "COLUMN", "column to sort by (TROUBLE, then LAUNCH/s)", s.sort);
    line.text("--filter", "TEXT", "only rows that contain this text", s.filter);
    line.flag("--why", "look for 5 s, then say what is wrong with which process, and what to type next", s.why);
    line.flag("--tree", "rows below their pods", s.tree);
    line.flag("-l,--latency", "measure launch calls and copies, and count their errors (adds return probes)",
              s.latency);
    line.flag("--cheap", "entry probes only: launches and copies, but no waits, memory or errors", s.cheap);
    add_name_options(line, s.names);
    line.number("--live-entries", "N:INT in [1024 - 100000000]", "allocations that can be tracked at once (1000000)",
                s.live_entries, {1024, 100'000'000});
    line.text("--nvml", "FILE", "NVML library for the GPUs' own figures, or off (libnvidia-ml.so.1)", s.nvml_library);
}

void validate_options(Settings& settings, const Options& options)
{
    Settings& s = settings;
    if (options.failed_only || options.user_stacks)
        throw UsageError(
            "-x and -U belong to the other tools: cudatop shows errors as a column, and the stacks of a process "
            "when its row is opened");
    if (s.latency && s.cheap)
        throw UsageError("--latency needs return probes, and --cheap has none: choose one");
    if (s.why && options.interval)
        throw UsageError(
            "--why looks once and then says what it saw: leave out the interval (-d 10s looks for longer)");
    check_name_options(s.names);
    s.sort = column_key(s.sort);
    s.ascending = is_ascending(s.sort);
    check_columns(options.columns, columns_on_offer(), {});
    s.choose_rows(s.by.value_or("pid"));
}

} // namespace gpusnoop::cudatop
