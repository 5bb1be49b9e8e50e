// SPDX-License-Identifier: Apache-2.0
// Golden tests: in each of its modes, a tool prints a table or histograms of a few fixed calls. golden/TOOL.txt has the
// expected text and, from the JSON of each mode, the rows with keys that the file does not contain yet. Histograms are
// in JSON only, because unit/output and unit/rows test their text. With GPUSNOOP_GOLDEN=write, the tests rewrite these
// files; review the differences before you commit them.
#pragma once

#include "attach/probes.hpp"
#include "base/options.hpp"
#include "rows/call_view.hpp"
#include "rows/calls.hpp"
#include "rows/output.hpp"
#include "who/processes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <functional>
#include <istream>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop::golden {

// Processes of a pod, a Slurm job and a service. Their pids cannot exist: the kernel's limit is 4194304.
inline constexpr image trainer{5000001, 1}, solver{5000002, 1}, server{5000003, 1};
struct TestProcesses : Processes {
    TestProcesses();
};

// Parses a command line with options that affect the output. `parse_option` parses an option that only this tool has;
// `more` is the rest of the line.
void parse_words(const std::string& words, Options& options, CallSettings& settings,
                 const std::function<bool(std::string_view word, std::istream& more)>& parse_option);

// Returns `n` calls with a duration of `ns_each` each. `symbol` is a function of the probe table, or empty.
CallDelta calls_of(const image& who, uint8_t kind, std::string_view symbol, uint64_t n, uint64_t ns_each);
// The whole probe table; the calls' function numbers are indices into it.
std::span<const Probe> all_probes();

// Optional measurements that a run enables in the BPF programs.
struct Measures {
    bool durations;
    bool results;
};

// End of the interval: 2026-01-01 10:00:00.123456 UTC.
inline constexpr uint64_t wall_ns = 1767261600'123456789;

// Returns the calls as the BPF programs would count them in this run: without calls and measurements that its options
// exclude.
std::vector<CallDelta> as_measured(std::vector<CallDelta> calls, const Options& options, const CallSettings& settings,
                                   Measures measures);

// Returns a function that returns a row's stack, if stacks are shown.
inline auto frames_of(const CallSettings& settings)
{
    return [&settings](const CallKey& key, const WhoSeen&) -> Frames {
        if (!settings.view.stack)
            return {};
        return Frames(
            {fmt::format("step {} (program.cpp:{})", key.stack, key.caller & 0xff), "main", "0x7f00dead0000"});
    };
}

// Returns the text or JSON that print() writes.
std::string written(const Options& options, const std::function<void(Output&)>& print);

// Returns a section of a golden file: a heading, the text, and those JSON records that have a key not in `shown` yet.
// Adds their keys to `shown`.
std::string section(const std::string& words, const std::string& text, const std::string& records,
                    std::set<std::string>& shown);

// Compares `shown` with golden/NAME.txt, or rewrites that file (GPUSNOOP_GOLDEN=write).
void compare(const std::string& name, const std::string& shown);

// The tool under test.
struct Subject {
    std::string name;
    std::string sort;                   // default sort key
    std::span<const char* const> modes; // command lines whose output is in the golden file
    std::string full_table;             // options for the table with all measurements
    std::string by;                     // the tool's own dimensions of --by that do not change totals
    std::string sums;                   // JSON keys whose totals are the same for every --by
    // If `rate` is the sort key, rows are sorted by the sum of the keys in `rate_of`, including rows without a rate.
    std::string rate;
    std::string rate_of;
    std::function<std::string(const std::string& words, bool json)> run;
};
void check(const Subject& subject);

// Base class of the tools. A tool must have the other fields of Subject, and Settings, validate_options(), calls() and
// print().
struct TestedTool {
    static constexpr const char *rate = "", *rate_of = "";
    static bool parse_option(auto&, std::string_view, std::istream&) { return false; }
    static Measures measures(const auto&, const Options&) { return {true, true}; }
};

template<class Tool>
void check()
{
    const auto run = [](const std::string& words, bool json) {
        Options options;
        typename Tool::Settings settings;
        options.json = json;
        settings.sort = Tool::sort;
        parse_words(words, options, settings, [&](std::string_view word, std::istream& more) {
            return Tool::parse_option(settings, word, more);
        });
        try {
            Tool::validate_options(settings, options);
        } catch (const Answer& answer) {
            return answer.text;
        }
        const auto calls = as_measured(Tool::calls(), options, settings, Tool::measures(settings, options));
        return written(options, [&](Output& output) { Tool::print(output, options, settings, calls); });
    };
    check(
        {Tool::name, Tool::sort, Tool::modes, Tool::full_table, Tool::by, Tool::sums, Tool::rate, Tool::rate_of, run});
}

} // namespace gpusnoop::golden
