// SPDX-License-Identifier: Apache-2.0
// A tool's tables and histograms of the same few calls, for each way of asking: golden/TOOL.txt has them as text and as
// JSON, and the tests say how they differ. GPUSNOOP_GOLDEN=write writes the files anew; read the difference before it
// is checked in.
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
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop::golden {

// Of a pod, of a Slurm job and of a service. No process has such pids: the kernel's largest is 4194304.
inline constexpr image trainer{5000001, 1}, solver{5000002, 1}, server{5000003, 1};
struct People : Processes {
    People();
};

// The words of a command line, as far as they say what is shown. own: takes the tool's own, and gives what follows it.
void ask(const std::string& words, Options& options, CallSettings& settings,
         const std::function<bool(std::string_view word, std::istream& more)>& own);

// n calls of this many nanoseconds each; the symbol is one of the probe table, or empty.
CallDelta calls_of(const image& who, uint8_t kind, std::string_view symbol, uint64_t n, uint64_t ns_each);
// All of the probe table that calls here are numbered by.
std::span<const Probe> all_probes();

// What else the kernel side counts.
struct Measures {
    bool durations; // in this run
    bool results;
};

// When the interval ended, in UTC: 2026-01-01 10:00:00.123456.
inline constexpr uint64_t wall_ns = 1767261600'123456789;

// As the kernel side has counted them in this run: what is not measured is not there, nor are calls that the run leaves
// out.
std::vector<CallDelta> as_counted(const std::vector<CallDelta>& calls, const Options& options,
                                  const CallSettings& settings, Measures measures);

// The stacks of rows, where there are any.
inline auto frames_of(const CallSettings& settings)
{
    return [&settings](const CallKey& key, const WhoSeen&) -> Frames {
        if (!settings.view.stack)
            return {};
        return Frames(
            {fmt::format("step {} (program.cpp:{})", key.stack, key.caller & 0xff), "main", "0x7f00dead0000"});
    };
}

// What an output writes: JSON, or text.
std::string written(const Options& options, const std::function<void(Output&)>& print);

// Compares with golden/NAME.txt, or writes it.
void compare(const std::string& name, const std::string& shown);

// A tool as it is tested.
struct Subject {
    std::string name;
    std::string sort;                   // what rows come by where nobody says otherwise
    std::span<const char* const> modes; // command lines
    std::string usual;                  // the one whose table has all that is measured
    std::span<const char* const> by;    // dimensions of --by
    std::span<const char* const> sums;  // JSON keys that add up, however rows are cut
    std::function<std::string(const std::string& words, bool json)> run;
    std::function<void(const Options&, const std::string& sort)> check_fields;
    // A key that orders rows without it, too: by what these add up to.
    std::string rate = {};
    std::span<const char* const> rate_of = {};
};
void check(const Subject& subject);

// `Tool` has those, Settings, validate_options(), own(), measures(), calls() and print().
template<class Tool>
void check()
{
    Subject subject{Tool::name,
                    Tool::sort,
                    Tool::modes,
                    Tool::usual,
                    Tool::by,
                    Tool::sums,
                    [](const std::string& words, bool json) {
                        Options options;
                        typename Tool::Settings settings;
                        options.json = json;
                        settings.sort = Tool::sort;
                        ask(words, options, settings,
                            [&](std::string_view word, std::istream& more) { return Tool::own(settings, word, more); });
                        Tool::validate_options(settings, options);
                        const auto calls =
                            as_counted(Tool::calls(), options, settings, Tool::measures(settings, options));
                        return written(options, [&](Output& output) { Tool::print(output, options, settings, calls); });
                    },
                    Tool::check_fields};
    if constexpr (requires { Tool::rate; }) {
        subject.rate = Tool::rate;
        subject.rate_of = Tool::rate_of;
    }
    check(subject);
}

} // namespace gpusnoop::golden
