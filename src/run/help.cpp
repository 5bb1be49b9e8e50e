// SPDX-License-Identifier: Apache-2.0
#include "run/help.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace gpusnoop {
namespace {

struct OptionGroup {
    std::string_view title;
    std::vector<std::string_view> options; // of all tools, by their long names
};

const OptionGroup groups[] = {
    {"What is traced",
     {"pid", "tid", "cgroup", "name", "user", "failed", "latency", "least", "interrupts", "cheap", "max-overhead",
      "api", "no-monitor", "xid"}},
    {"How it is shown",
     {"batch",       "why",      "tcp",     "files",         "by",          "per",        "fail-if",      "split",
      "prices",      "teams",    "summary", "storms",        "warm-up",     "events",     "stalled",      "ras",
      "leaks",       "older",    "exited",  "hist",          "per-process", "per-thread", "milliseconds", "nanoseconds",
      "user-stacks", "native",   "depth",   "skip",          "sort",        "rows",       "filter",       "tree",
      "graphs",      "names",    "columns", "extra-columns", "timestamp",   "json",       "csv",          "record",
      "record-max",  "replay",   "at",      "svg",           "pprof",       "speedscope", "folded",       "weight",
      "trace",       "textfile", "listen"}},
    {"When the run ends", {"duration", "interval", "state"}},
    {"Rarely needed",
     {"live-entries", "nvml", "dcgm", "no-cache", "no-config", "verbose", "attach", "host-root", "ring-mb",
      "table-rows", "info", "clean", "help", "version"}},
};

constexpr size_t width = 100;
constexpr size_t text_column = 30;

// "pid" of "-p,--pid".
std::string_view long_name_of(const ListedOption* option)
{
    return std::string_view(option->names).substr(option->names.find("--") + 2);
}

// The text beside what it explains, or below where that is long, in as many lines as it needs.
void explain(std::string& out, std::string_view what, std::string_view text)
{
    std::string line(what);
    if (line.size() + 2 > text_column) {
        out += line + '\n';
        line.clear();
    }
    line.resize(text_column, ' ');
    for (bool first = true; !text.empty(); first = false) {
        const size_t end = std::min(text.find(' '), text.size());
        if (!first && line.size() + 1 + end > width) {
            out += line + '\n';
            line.assign(text_column, ' ');
            first = true;
        }
        line += first ? "" : " ";
        line += text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    out += line + '\n';
}

// "  -p, --pid PID[,PID]", and where there is no letter, room for it.
std::string with_type(const ListedOption& option)
{
    const size_t comma = option.names.find(',');
    std::string line = comma == std::string::npos
                           ? "      " + option.names
                           : fmt::format("  {}, {}", option.names.substr(0, comma), option.names.substr(comma + 1));
    return option.type.empty() ? line : line + ' ' + option.type;
}

} // namespace

std::string help_text(std::string_view tool, std::string_view summary, std::string_view examples,
                      std::span<const ListedArgument> arguments, std::span<const ListedOption> options)
{
    // Who takes an interval traces, and can start what it traces; others are handed what they read.
    const bool traces = std::ranges::find(arguments, "INTERVAL", &ListedArgument::name) != arguments.end();
    std::string usage = traces ? " [INTERVAL [COUNT]] [-- PROGRAM [ARG...]]" : "";
    if (!traces)
        for (const ListedArgument& argument : arguments)
            usage += ' ' + argument.name;
    std::string out =
        fmt::format("{}\n\nUsage: {} [OPTION...]{}\n\nExamples:\n{}\nArguments:\n", summary, tool, usage, examples);
    for (const ListedArgument& argument : arguments)
        explain(out, "  " + argument.name, argument.text);
    if (traces)
        explain(out, "  PROGRAM [ARG...]", "behind --: start it, and trace it and its children from its first call");
    auto list = [&](std::string_view title, const std::vector<const ListedOption*>& listed) {
        if (!listed.empty())
            out += fmt::format("\n{}:\n", title);
        for (const ListedOption* option : listed)
            explain(out, with_type(*option), option->text);
    };
    std::vector<const ListedOption*> others;
    for (const ListedOption& option : options)
        others.push_back(&option);
    for (const OptionGroup& group : groups) {
        std::vector<const ListedOption*> listed;
        for (const std::string_view name : group.options)
            if (const auto found = std::ranges::find(others, name, long_name_of); found != others.end()) {
                listed.push_back(*found);
                others.erase(found);
            }
        list(group.title, listed);
    }
    list("Other", others);
    return out;
}

} // namespace gpusnoop
