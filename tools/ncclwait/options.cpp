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
        {"--per-process", "-P is for histograms (-H) of the other tools; here, --by pid makes rows of processes"},
        {"--per-thread", "-L is for histograms (-H) of the other tools; here, --by rank makes rows of ranks"},
        {"--table-rows", "--table-rows is for counts of calls in the kernel, which ncclwait does not have"},
    };
    for (const auto& [option, why] : refused)
        line.refuse(option, why);
    line.text(
        "--by", "WHAT[,WHAT]",
        fmt::format("rows by communicator, rank, op, size, stream, {}, or several (communicator)", WhoView::names),
        settings.by);
    line.flag("-e,--events", "one line per collective, with when each rank came to it", settings.events);
    line.text("-H,--hist", "WHAT", "histogram of skew, size or enqueue (how long calls take)", settings.measure);
    line.text("--stalled", "SECONDS",
              "say who has not come to a collective once others have waited for so long (10; or 500ms, 5m)",
              [&limit_ns = settings.stalled_ns](const std::string& text) {
                  using namespace std::chrono_literals;
                  const auto limit =
                      time_argument("how long a rank may be waited for (--stalled)", text, "s", 10ms, 240h);
                  limit_ns = static_cast<uint64_t>(limit.count());
              });
    line.number_or_none("--ras", "PORT",
                        "with a hang, ask NCCL's RAS service about ranks on all hosts (28028); asked at the start, too",
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
        throw UsageError("COUNT is of reports, and lines (-e) come without: leave it out (-d 10s ends the run)");
    if (s.events && s.by)
        throw UsageError("--by is for tables and histograms: a line (-e) is a collective");
    if (!options.columns.empty() && (s.events || s.histogram()))
        throw UsageError("--columns is for tables: leave out -e and -H, or --columns");
    if (options.failed_only && s.histogram())
        throw UsageError("calls that failed have neither skew nor size: leave out -x or -H");
    s.failed = options.failed_only;
    if (s.failed && !s.events && !s.by)
        s.by = "rank,op"; // whose call, and which
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
