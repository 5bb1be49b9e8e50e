// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/options.hpp"

#include "run/command_line.hpp"
#include "run/shared_options.hpp"

#include <fmt/format.h>
#include <utility>

namespace gpusnoop::cudagap {

void add_options(CommandLine& line, Settings& settings)
{
    const std::pair<const char*, const char*> refused[] = {
        {"--failed", "-x filters single calls, which cudagap does not show"},
        {"--table-rows", "--table-rows sizes the kernel's table of calls, which cudagap does not use; its table has "
                         "room for 16384 threads"},
    };
    for (const auto& [option, why] : refused)
        line.refuse(option, why);
    line.text("--by", "WHAT[,WHAT]",
              fmt::format("group rows by {}, or several (pid); with -H also stream", WhoView::names), settings.by);
    line.flag("--why", "after 5 s, explain what holds up each process, and suggest a command to run next",
              settings.why);
    line.flag("--tcp", "TCP connections by peer: round trips, retransmits, bytes", settings.tcp);
    line.flag("--files", "files whose reads and writes block: how often and how long", settings.files);
    line.flag("--interrupts", "also report interrupt time (hooks every interrupt on the machine)", settings.interrupts);
    line.flag("--cheap", "no blocking reasons; reads schedstat instead of tracing the scheduler", settings.cheap);
    add_name_options(line, settings.names);
    line.explain("--names", "form of kernel names in lines: short (default), full or base");
    line.flag("-e,--events", "one line per gap between launches of a thread", settings.events);
    line.text("-l,--least", "MIN_US",
              "only gaps of at least this many microseconds (or 5ms, 2s); implies -e, unless -H is given",
              [&least_ns = settings.least_ns](const std::string& text) {
                  using namespace std::chrono_literals;
                  const auto least = time_argument("a minimum duration (-l)", text, "us", 0ns, 240h);
                  least_ns = static_cast<uint64_t>(least.count());
              });
    line.explain("--user-stacks",
                 "stacks where threads block, in the kernel and the program; with -e, below each line");
    line.text("-H,--hist", "WHAT", "histogram of gap (between launches of a thread)", settings.measure);
    line.text("-s,--sort", "COLUMN", fmt::format("column to sort by ({})", settings.sort), settings.sort);
}

void validate_options(Settings& settings, const Options& options)
{
    Settings& s = settings;
    constexpr std::string_view measures[] = {"gap"};
    measure_number(s.measure, measures);
    check_name_options(s.names);
    if (s.events && s.histogram())
        throw UsageError("choose lines (-e) or histograms (-H), not both");
    if (s.why && (s.events || s.histogram() || s.by))
        throw UsageError("--why prints a sentence for each process: leave out --by, -e and -H");
    if (s.cheap && (s.why || s.events || s.histogram() || s.least_ns))
        throw UsageError("--cheap does not trace why threads block: leave out --why, -e, -l and -H");
    if (s.why && options.interval)
        throw UsageError("--why reports once: leave out the interval (-d 10s observes for longer)");
    s.events |= !s.why && s.least_ns && !s.histogram();
    s.stacks = options.user_stacks;
    if (s.stacks && (s.cheap || s.why || s.histogram()))
        throw UsageError("-U prints its own table: leave out --cheap, --why and -H");
    if (s.stacks && !s.events && s.sort == Settings().sort)
        s.sort = "blocked_ns";
    if (s.tcp && (s.why || s.stacks || s.events || s.histogram()))
        throw UsageError("--tcp prints its own table: leave out --why, -U, -e, -l and -H");
    if (s.files && (s.tcp || s.why || s.stacks || s.events || s.histogram() || s.cheap))
        throw UsageError("--files prints its own table: leave out --tcp, --why, --cheap, -U, -e, -l and -H");
    if (s.interrupts && (s.cheap || s.tcp || s.files || (s.stacks && !s.events)))
        throw UsageError("--cheap, --tcp, --files and -U do not show interrupt time: leave them out, or --interrupts");
    if (s.files && s.sort == Settings().sort)
        s.sort = "blocked_ns";
    if (s.tcp && s.sort == Settings().sort)
        s.sort = "connections";
    if (!s.histogram() && (options.per_process || options.per_thread))
        throw UsageError("-P and -L are for histograms (-H); for tables use --by pid or --by thread");
    if (!options.columns.empty() && (s.events || s.histogram() || s.why))
        throw UsageError("--columns is for tables: leave out -e, -H and --why, or --columns");
    if (s.stacks && !s.events)
        gpusnoop::check_fields(stack_fields(), options, s.sort, {});
    else if (s.tcp)
        gpusnoop::check_fields(peer_fields(), options, s.sort, {});
    else if (s.files)
        gpusnoop::check_fields(file_fields(), options, s.sort, {});
    else
        check_fields(options, s.sort);
    s.view.who.owner = options.extra_columns;
    s.view.who.pid |= options.per_process || options.per_thread;
    s.view.who.thread |= options.per_thread;
    const Dimension stream[] = {{"stream", &s.view.stream}};
    if (s.by)
        parse_by(*s.by, s.view, stream, false);
    else
        s.view.who.pid |= !s.histogram();
    if (s.view.stream && !s.histogram())
        throw UsageError("--by stream groups gaps between launches; other time belongs to no stream: add -H gap");
    if (s.tcp && s.view.who.thread)
        throw UsageError("connections belong to processes, not to threads: leave out --by thread, or --tcp");
}

} // namespace gpusnoop::cudagap
