// SPDX-License-Identifier: Apache-2.0
#include "run/shared_options.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "output/flame_formats.hpp"
#include "output/flames_output.hpp"
#include "run/command_line.hpp"
#include "who/cuda_users.hpp"
#include "who/host_files.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string>

namespace gpusnoop {
namespace {

constexpr size_t comm_max = 15;       // TASK_COMM_LEN without the terminating 0
constexpr uint32_t pid_max = 1 << 22; // PID_MAX_LIMIT of 64-bit kernels

std::chrono::nanoseconds seconds(std::string_view what, std::string_view text)
{
    using namespace std::chrono_literals;
    return time_argument(what, text, "s", 10ms, 240h);
}

// Text such as "session, multi, tracefs or perf".
std::string one_of(std::span<const std::string_view> names)
{
    return fmt::format("{} or {}", joined(names.first(names.size() - 1), ", "), names.back());
}

// Rejects an interval that looks like a program: the user probably forgot "--" before it.
void refuse_program(std::string_view text)
{
    const bool a_number = !text.empty() && text.find_first_of("0123456789") <= 1; // also ".5" and "-1"
    if (!a_number && (text.find('/') != text.npos || text.size() > 3))
        throw UsageError(
            fmt::format("an interval must be a time, not '{0}'; to start a program and trace it: -- {0}", text));
}

// Rejects a process name given to -p, with a hint to -n.
void refuse_name(std::string_view text)
{
    constexpr std::string_view no_name = "0123456789+-. ";
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/@+";
    if (text.empty() || no_name.find(text.front()) != no_name.npos)
        return;
    const std::string_view name = text.substr(0, comm_max);
    const std::string users = cuda_processes_named(name);
    throw UsageError(fmt::format("a process id (-p) must be a number, not '{}'; to select by name: -n {}{}{}", text,
                                 name.find_first_not_of(plain) == name.npos ? name : "NAME", users.empty() ? "" : "; ",
                                 users));
}

} // namespace

void add_shared_options(CommandLine& line, Options& o, std::span<const std::string_view> ways,
                        std::string_view without_interval)
{
    line.texts("-p,--pid", "PID[,PID]", "only these processes", [&o](const std::string& text) {
        // Splits the list itself, because CLI11 would ignore empty entries.
        for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
            end = text.find(',', at);
            const std::string_view one = std::string_view(text).substr(at, end - at);
            refuse_name(one);
            o.pids.push_back(static_cast<pid_t>(number_argument<uint32_t>("a process id (-p)", one, 1, pid_max)));
        }
    });
    line.text("-t,--tid", "TID", "only this thread", [&o](const std::string& text) {
        o.tid = static_cast<pid_t>(number_argument<uint32_t>("a thread id (-t)", text, 1, pid_max));
    });
    line.text("-n,--name", "COMM", "only processes or threads whose name contains COMM", [&o](const std::string& text) {
        if (text.empty() || text.size() > comm_max)
            throw UsageError("a name (-n) must have 1 to 15 bytes: the kernel stores no more");
        o.comm = text;
    });
    line.text("-c,--cgroup", "CGROUP", "only this cgroup: a path, a container's id or name, pod:NAMESPACE/NAME",
              [&o](const std::string& text) {
                  if (text.empty())
                      throw UsageError(
                          "a cgroup (-c) must be a path, a container's id or name, or pod:NAMESPACE/NAME, not empty");
                  o.cgroup = text;
              });
    line.text("--user", "NAME", "run the program (--) as this user: a name or a number", [&o](const std::string& text) {
        const auto passwd = HostFiles("/").read("etc/passwd");
        o.user = find_account(passwd.value_or(""), text);
        if (!o.user)
            throw UsageError(fmt::format("there is no user '{0}' in /etc/passwd; for a user of a directory service: "
                                         "-- runuser -u {0} -- PROGRAM",
                                         printable(text)));
    });
    line.text("-d,--duration", "SECONDS", "stop after this time (or 5m, 2h)",
              [&o](const std::string& text) { o.duration = seconds("a duration (-d)", text); });
    auto interval_handler = [&o](std::string_view what) {
        return [&o, what](const std::string& text) {
            if (o.interval)
                throw UsageError("give an interval as the first argument or with -i, not both");
            o.interval = seconds(what, text);
        };
    };
    line.argument("INTERVAL", fmt::format("seconds between reports (or 500ms, 1m); {}", without_interval),
                  [handle = interval_handler("an interval")](const std::string& text) {
                      refuse_program(text);
                      handle(text);
                  });
    line.argument("COUNT", "number of reports", [&o](const std::string& text) {
        o.count = number_argument<uint64_t>("a count", text, 1, UINT32_MAX);
    });
    line.text("-i,--interval", "SECONDS", "same as INTERVAL", interval_handler("an interval (-i)"));
    line.flag("-T,--timestamp", "print the time of day above each report", o.timestamps);
    line.flag("-x,--failed", "only calls that failed", o.failed_only);
    line.flag("-U,--user-stacks", "show the user stack of the caller", o.user_stacks);
    line.text("--trace", "FILE", "also write the lines (-e) as a timeline for Perfetto; compressed if FILE ends in .gz",
              [&o](const std::string& text) {
                  if (text.empty())
                      throw UsageError("a timeline (--trace) needs a file name, not an empty text");
                  o.trace = text;
              });
    for (const FlameFormat& form : flame_formats())
        line.text(std::string(form.option), "FILE", std::string(form.help), [&o, &form](const std::string& text) {
            if (text.empty())
                throw UsageError(fmt::format("a flame graph ({}) needs a file name, not an empty text", form.option));
            o.flames.emplace_back(form.option, text);
        });
    line.flag("--folded", "print stacks as lines for flamegraph.pl instead of a table", o.folded);
    line.text("--weight", "NAME", "value shown as frame width: launches, bytes, live_bytes, total_ns ...", o.weight);
    line.flag("-P,--per-process", "a histogram per process", o.per_process);
    line.flag("-L,--per-thread", "a histogram per thread", o.per_thread);
    line.flag("-m,--milliseconds", "histograms of durations in milliseconds", o.milliseconds);
    line.flag("-N,--nanoseconds", "histograms of durations in nanoseconds", o.nanoseconds);
    line.text("-r,--rows", "ROWS", "maximum number of rows per table (20; 0: all)", [&o](const std::string& text) {
        o.rows = number_argument<uint32_t>("a number of rows (-r)", text, 0, 1'000'000);
    });
    line.list("--columns", "NAME[,NAME]", "only these columns; +NAME adds one, -NAME removes one, help lists all",
              o.columns);
    line.flag("-j,--json", "one JSON object per line instead of text", o.json);
    line.text("--record", "FILE", "also write JSON to this file; compressed if FILE ends in .gz or .zst",
              [&o](const std::string& text) {
                  if (text.empty())
                      throw UsageError("a recording (--record) needs a file name, not an empty text");
                  o.record = text;
              });
    line.text("--record-max", "SIZE", "maximum size of the recording (1G)", [&o](const std::string& text) {
        o.record_max = size_argument("the size of a recording (--record-max)", text, 1 << 20, uint64_t{1} << 50);
    });
    line.text("--replay", "FILE", "show the tables of a recording (-j, --record), and trace nothing",
              [&o](const std::string& text) {
                  if (text.empty())
                      throw UsageError("--replay needs the name of a recording, not an empty text");
                  o.replay = text;
              });
    line.text("--at", "TIME", "start --replay at this time (10:05:30)", o.replay_at);
    line.flag("-X,--extra-columns", "also show the pid inside the container, and the owner (pod, job, unit)",
              o.extra_columns);
    line.text("--host-root", "FOLDER", "mount point of the host's root, if this is a container (/)",
              [&o](const std::string& text) {
                  if (!text.starts_with('/'))
                      throw UsageError(
                          fmt::format("the host's root (--host-root) must be an absolute path, not '{}'", text));
                  o.host_root = text;
                  while (o.host_root.size() > 1 && o.host_root.ends_with('/'))
                      o.host_root.pop_back();
              });
    line.flag("-v,--verbose", "print what is attached where; -vv: also libbpf's log", o.verbosity);
    line.text("--attach", "HOW", fmt::format("how to attach: {} (the best that works)", one_of(ways)),
              [&o, ways](const std::string& text) {
                  if (std::ranges::find(ways, text) == ways.end())
                      throw UsageError(fmt::format("unknown way of attaching '{}': choose {}{}", text, one_of(ways),
                                                   suggestion(text, joined(ways, ", "))));
                  o.attach = text;
              });
    const std::string ring = fmt::format("size of the event buffer in MiB, a power of two ({})", o.ring_mb);
    line.text("--ring-mb", "MB", ring, [&o](const std::string& text) {
        o.ring_mb = number_argument<uint32_t>("a buffer size (--ring-mb)", text, 1, 1024);
        if (o.ring_mb & (o.ring_mb - 1))
            throw UsageError(fmt::format("a buffer size (--ring-mb) must be a power of two, not {}", o.ring_mb));
    });
    line.text(
        "--table-rows", "ROWS", "rows of the table of calls in the kernel (default depends on the number of CPUs)",
        [&o](const std::string& text) { o.table_rows = number_argument<uint32_t>("--table-rows", text, 16, 1 << 20); });
    line.flag("--info", "show what this machine supports and what the tool uses of it, and exit", o.info);
    line.flag("--clean", "remove what killed runs have left behind, and exit", o.clean);
}

void add_metrics_options(CommandLine& line, MetricsOptions& options)
{
    line.text("--textfile", "FILE.prom", "write metrics for node_exporter's textfile collector instead of tables",
              options.textfile);
    line.text("--listen", "[ADDR:]PORT",
              "instead of tables, serve metrics for Prometheus at /metrics (default ADDR: 127.0.0.1)", options.listen);
}

void refuse_flame_options(CommandLine& line, std::string_view why)
{
    for (const FlameFormat& form : flame_formats())
        line.refuse(std::string(form.option), fmt::format("{} {}", form.option, why));
    for (const std::string_view option : {"--folded", "--weight"})
        line.refuse(std::string(option), fmt::format("{} {}", option, why));
}

void check_replay(const CommandLine& line, const Options& options)
{
    if (options.replay.empty() && !options.replay_at.empty())
        throw UsageError("--at is a time in a recording: add --replay FILE");
    if (options.replay.empty())
        return;
    // Nothing is traced, measured or written, so only options that affect the display are allowed.
    constexpr std::string_view shown[] = {"--replay",  "--at",        "--by",       "--sort",   "--rows",
                                          "--columns", "--timestamp", "--names",    "--batch",  "--filter",
                                          "--tree",    "--no-config", "--interval", "--verbose"};
    for (const std::string& option : line.given())
        if (std::ranges::find(shown, option) == std::end(shown))
            throw UsageError(fmt::format("--replay shows what was recorded: leave out {}", option));
    if (!options.program.empty())
        throw UsageError("--replay shows what was recorded: leave out the program after --");
}

void check_shared_options(const Options& options)
{
    check_flame_options(options);
    if (options.count && !options.interval)
        throw UsageError("a count needs an interval");
    if (options.milliseconds && options.nanoseconds)
        throw UsageError("choose milliseconds (-m) or nanoseconds (-N), not both");
    if (options.tid && !options.pids.empty())
        throw UsageError("give a process (-p) or a thread (-t), not both");
    if (!options.program.empty() && (options.tid || !options.pids.empty() || !options.cgroup.empty()))
        throw UsageError("a started program (--) is the only target: leave out -p, -t and -c");
    if (options.user && options.program.empty())
        throw UsageError("--user is the user of a started program: add -- PROGRAM");
}

void add_name_options(CommandLine& line, NameOptions& options)
{
    line.text("--names", "HOW", "kernel names in tables: short (default), full or base", options.form);
    line.flag("--no-cache", "do not use the disk cache of kernel names", options.no_cache);
}

} // namespace gpusnoop
