// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include "error.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/ranges.h>
#include <iostream>

namespace gpusnoop {
namespace {

constexpr uint32_t pid_max = 1 << 22; // PID_MAX_LIMIT of 64-bit kernels

// All of the text as a number; one sentence for everything that is none.
template<class T>
T number(std::string_view what, std::string_view text, T least, T most)
{
    T value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() ||
        !(value >= least && value <= most)) // a NaN is neither

        throw UsageError(fmt::format("{} must be a number from {} to {}, not '{}'", what, least, most, text));
    return value;
}

std::chrono::nanoseconds seconds(std::string_view what, std::string_view text)
{
    constexpr double longest = 1e6; // eleven days
    double value = number(what, text, 0.0, longest);
    if (value < 0.01)
        throw UsageError(fmt::format("{} must be at least 0.01 seconds, not '{}'", what, text));
    return std::chrono::nanoseconds(static_cast<int64_t>(value * 1e9));
}

// CLI11 turns exceptions other than its own into failures without a sentence.
template<class F>
auto checked(F&& convert)
{
    return [convert](const std::string& text) {
        try {
            convert(text);
        } catch (const UsageError& error) {
            throw CLI::ValidationError("", error.what());
        }
    };
}

// "session, multi, tracefs or perf"
std::string one_of(std::span<const std::string_view> names)
{
    return fmt::format("{} or {}", fmt::join(names.first(names.size() - 1), ", "), names.back());
}

} // namespace

void add_shared_options(CLI::App& app, Options& o, std::span<const std::string_view> ways)
{
    auto add = [&app](const std::string& names, const std::string& type, const std::string& help, auto convert) {
        app.add_option_function<std::string>(names, checked(convert), help)->type_name(type);
    };
    auto add_pids = checked([&o](const std::string& text) {
        // CLI11's own splitting would pass over an empty entry.
        for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
            end = text.find(',', at);
            o.pids.push_back(static_cast<pid_t>(
                number<uint32_t>("a process id (-p)", std::string_view(text).substr(at, end - at), 1, pid_max)));
        }
    });
    app.add_option_function<std::vector<std::string>>(
           "-p,--pid", [add_pids](const std::vector<std::string>& lists) { std::ranges::for_each(lists, add_pids); },
           "only these processes")
        ->type_name("PID[,PID]")
        ->allow_extra_args(false);
    add("-t,--tid", "TID", "only this thread", [&o](const std::string& text) {
        o.tid = static_cast<pid_t>(number<uint32_t>("a thread id (-t)", text, 1, pid_max));
    });
    add("-n,--name", "COMM", "only processes or threads whose name contains COMM", [&o](const std::string& text) {
        if (text.empty() || text.size() > 15)
            throw UsageError("a name (-n) has 1 to 15 bytes: the kernel keeps no more");
        o.comm = text;
    });
    add("-c,--cgroup", "CGROUP",
        "only this cgroup and those below: a path, a container's id or name, pod:NAMESPACE/NAME",
        [&o](const std::string& text) {
            if (text.empty())
                throw UsageError("a cgroup (-c) is a path, a container's id or name, or pod:NAMESPACE/NAME, not empty");
            o.cgroup = text;
        });
    add("-d,--duration", "SECONDS", "end after this time",
        [&o](const std::string& text) { o.duration = seconds("a duration (-d)", text); });
    auto* interval = app.add_option_function<std::string>(
        "interval", checked([&o](const std::string& text) { o.interval = seconds("an interval", text); }),
        "seconds between reports; without: one report at the end");
    interval->type_name("SECONDS");
    app.add_option_function<std::string>("count", checked([&o](const std::string& text) {
                                             o.count = number<uint64_t>("a count", text, 1, UINT32_MAX);
                                         }),
                                         "number of reports")
        ->type_name("COUNT");
    app.add_option_function<std::string>(
           "-i,--interval", checked([&o](const std::string& text) { o.interval = seconds("an interval (-i)", text); }),
           "the same as the first argument")
        ->type_name("SECONDS")
        ->excludes(interval);
    app.add_flag("-T,--timestamp", o.timestamps, "show the time of day");
    app.add_flag("-x,--failed", o.failed_only, "only calls that failed");
    app.add_flag("-U,--user-stacks", o.user_stacks, "show who calls, by user stack");
    app.add_flag("-P,--per-process", o.per_process, "a histogram per process");
    app.add_flag("-L,--per-thread", o.per_thread, "a histogram per thread");
    app.add_flag("-m,--milliseconds", o.milliseconds, "histograms of durations in milliseconds");
    app.add_flag("-N,--nanoseconds", o.nanoseconds, "histograms of durations in nanoseconds");
    add("-r,--rows", "ROWS", "rows of a table (20; 0: all)",
        [&o](const std::string& text) { o.rows = number<uint32_t>("a number of rows (-r)", text, 0, 1'000'000); });
    app.add_flag("-j,--json", o.json, "one JSON object per line instead of text");
    app.add_flag("-X,--extra-columns", o.extra_columns,
                 "show the pid inside the container, and the owner: pod, "
                 "container, job or unit");
    add("--host-root", "FOLDER", "where the root of the host is mounted, if this is a container (/)",
        [&o](const std::string& text) {
            if (!text.starts_with('/'))
                throw UsageError(fmt::format("the root of the host (--host-root) is an absolute path, not '{}'", text));
            o.host_root = text;
            while (o.host_root.size() > 1 && o.host_root.ends_with('/'))
                o.host_root.pop_back();
        });
    app.add_flag("-v,--verbose", o.verbosity, "say what is attached where; -vv: libbpf's log, too");
    add("--attach", "HOW", fmt::format("how to attach: {} (the best that works)", one_of(ways)),
        [&o, ways](const std::string& text) {
            if (std::ranges::find(ways, text) == ways.end())
                throw UsageError(
                    fmt::format("there is no way of attaching called '{}': choose {}", text, one_of(ways)));
            o.attach = text;
        });
    add("--ring-mb", "MB", "size of the event buffer, a power of two (8)", [&o](const std::string& text) {
        o.ring_mb = number<uint32_t>("a buffer size (--ring-mb)", text, 1, 1024);
        if (o.ring_mb & (o.ring_mb - 1))
            throw UsageError(fmt::format("a buffer size (--ring-mb) is a power of two, not {}", o.ring_mb));
    });
    add("--table-rows", "ROWS", "rows of the table in the kernel (by the number of CPUs)",
        [&o](const std::string& text) { o.table_rows = number<uint32_t>("--table-rows", text, 16, 1 << 20); });
}

std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv, Options& options)
{
    app.set_version_flag("-V,--version", GPUSNOOP_VERSION);
    try {
        app.parse(argc, argv);
        if (options.count && !options.interval)
            throw UsageError("a count needs an interval");
        if (options.milliseconds && options.nanoseconds)
            throw UsageError("choose milliseconds (-m) or nanoseconds (-N)");
        if (options.tid && !options.pids.empty())
            throw UsageError("give a process (-p) or a thread (-t), not both");
    } catch (const CLI::CallForHelp&) {
        std::cout << app.help();
        return 0;
    } catch (const CLI::CallForVersion&) {
        std::cout << app.get_name() << " " << GPUSNOOP_VERSION << "\n";
        return 0;
    } catch (const CLI::ParseError& error) {
        std::string_view what = error.what();
        warn(what.starts_with(": ") ? what.substr(2) : what);
        std::cerr << "Try '" << app.get_name() << " --help'.\n";
        return 2;
    } catch (const UsageError& error) {
        warn(error.what());
        std::cerr << "Try '" << app.get_name() << " --help'.\n";
        return 2;
    }
    return std::nullopt;
}

} // namespace gpusnoop
