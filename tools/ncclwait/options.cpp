// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/options.hpp"

#include "run/command_line.hpp"
#include "tools/ncclwait/ras.hpp"

#include <fmt/format.h>
#include <utility>

namespace gpusnoop::ncclwait {

void add_options(CommandLine& line, Settings& settings)
{
    const std::pair<const char*, const char*> refused[] = {
        {"--per-process", "-P is for histograms (-H) of the other tools; use --by pid for a row per process"},
        {"--per-thread", "-L is for histograms (-H) of the other tools; use --by rank for a row per rank"},
        {"--table-rows", "--table-rows sizes the kernel's table of calls, which ncclwait does not use"},
    };
    for (const auto& [option, why] : refused)
        line.refuse(option, why);
    line.text("--by", "WHAT[,WHAT]",
              fmt::format("group rows by communicator, rank, op, size, stream, {}, or several (communicator)",
                          WhoView::names),
              settings.by);
    line.flag("-e,--events", "one line per collective, with the arrival time of each rank", settings.events);
    line.text("-H,--hist", "WHAT", "histogram of skew, size or enqueue (duration of calls)", settings.measure);
    line.text("--stalled", "SECONDS",
              "report the missing ranks when others have waited in a collective for this long (10; or 500ms, 5m)",
              [&limit_ns = settings.stalled_ns](const std::string& text) {
                  using namespace std::chrono_literals;
                  const auto limit = time_argument("the limit for waiting ranks (--stalled)", text, "s", 10ms, 240h);
                  limit_ns = static_cast<uint64_t>(limit.count());
              });
    line.number_or_none("--ras", "PORT",
                        "at the start and at each hang, query NCCL's RAS service about ranks on all hosts (28028)",
                        settings.ras_port, {1, 65535}, std::to_string(RasClient::usual_port));
    line.text("-s,--sort", "COLUMN", fmt::format("column to sort by ({}; with -x errors)", settings.sort),
              settings.sort);
}

void validate_options(Settings& settings, const Options& options)
{
    Settings& s = settings;
    constexpr std::string_view measures[] = {"skew", "size", "enqueue"};
    s.histogram_of = static_cast<Measure>(measure_number(s.measure, measures));
    if (s.events && s.histogram())
        throw UsageError("choose lines (-e) or histograms (-H), not both");
    if (s.events && options.count)
        throw UsageError("COUNT limits the number of reports, but -e prints lines instead: leave COUNT out; -d 10s "
                         "limits the run to 10 s");
    if (s.events && s.by)
        throw UsageError("--by is for tables and histograms, not for lines (-e): leave out --by or -e");
    if (!options.columns.empty() && (s.events || s.histogram()))
        throw UsageError("--columns is for tables: leave out -e and -H, or --columns");
    if (options.failed_only && s.histogram())
        throw UsageError("failed calls have no skew and no size: leave out -x or -H");
    s.failed = options.failed_only;
    if (s.failed && !s.events && !s.by)
        s.by = "rank,op";
    if (s.failed && s.sort == Settings().sort)
        s.sort = "errors";
    check_fields(options, s.sort);
    s.view.who.owner = options.extra_columns;
    s.communicator = !s.by;
    if (s.by) {
        const Dimension own[] = {{"communicator", &s.communicator},
                                 {"rank", &s.rank},
                                 {"op", &s.op},
                                 {"size", &s.size},
                                 {"stream", &s.stream}};
        parse_by(*s.by, s.view, own, false);
    }
    s.communicator |= s.rank || s.stream;
}

} // namespace gpusnoop::ncclwait
