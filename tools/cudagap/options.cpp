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
        {"--failed", "-x is about single calls, which cudagap does not show"},
        {"--table-rows", "--table-rows is for counts of calls; cudagap has room for 16384 threads"},
    };
    for (const auto& [option, why] : refused)
        line.refuse(option, why);
    line.text("--by", "WHAT[,WHAT]", fmt::format("rows by {}, or several (pid); stream, too, with -H", WhoView::names),
              settings.by);
    line.flag("--why", "after 5 s, say why each process gives the GPU no more work, and what to type next",
              settings.why);
    line.flag("--tcp", "TCP connections by peer: round trips, retransmits, bytes", settings.tcp);
    line.flag("--files", "files whose reads and writes block: how often, for how long", settings.files);
    line.flag("--interrupts", "hard and soft interrupts of threads are parts, too: each of the machine is looked at",
              settings.interrupts);
    line.flag("--cheap", "no reasons: the scheduler is not traced, its own account of the threads is read",
              settings.cheap);
    add_name_options(line, settings.names);
    line.explain("--names", "kernel names in lines: short, full or base (short)");
    line.flag("-e,--events", "one line per gap between launches of a thread", settings.events);
    line.text("-l,--least", "MIN_US",
              "only gaps that last at least this many microseconds (or 5ms, 2s); as lines (-e), unless -H",
              [&least_ns = settings.least_ns](const std::string& text) {
                  using namespace std::chrono_literals;
                  const auto least = time_argument("a minimum duration (-l)", text, "us", 0ns, 240h);
                  least_ns = static_cast<uint64_t>(least.count());
              });
    line.explain("--user-stacks",
                 "where threads block, by stack in the kernel and in the program; with -e, below lines");
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
        throw UsageError("--why has a sentence for each process: leave out --by, -e and -H");
    if (s.cheap && (s.why || s.events || s.histogram() || s.least_ns))
        throw UsageError("--cheap knows no reasons: leave out --why, -e, -l and -H");
    if (s.why && options.interval)
        throw UsageError(
            "--why looks once and then says what it saw: leave out the interval (-d 10s looks for longer)");
    s.events |= !s.why && s.least_ns && !s.histogram();
    s.stacks = options.user_stacks;
    if (s.stacks && (s.cheap || s.why || s.histogram()))
        throw UsageError("-U has a table of its own: leave out --cheap, --why and -H");
    if (s.stacks && !s.events && s.sort == Settings().sort)
        s.sort = "blocked_ns";
    if (s.tcp && (s.why || s.stacks || s.events || s.histogram()))
        throw UsageError("--tcp has a table of its own: leave out --why, -U, -e, -l and -H");
    if (s.files && (s.tcp || s.why || s.stacks || s.events || s.histogram() || s.cheap))
        throw UsageError("--files has a table of its own: leave out --tcp, --why, --cheap, -U, -e, -l and -H");
    if (s.interrupts && (s.cheap || s.tcp || s.files || (s.stacks && !s.events)))
        throw UsageError(
            "--interrupts is about parts of time: leave out --cheap, --tcp, --files and -U, or --interrupts");
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
        throw UsageError("--by stream is about gaps between launches, and what else a thread does belongs to no "
                         "stream: add -H gap");
    if (s.tcp && s.view.who.thread)
        throw UsageError("connections are of processes, not of threads: leave out --by thread, or --tcp");
}

} // namespace gpusnoop::cudagap
