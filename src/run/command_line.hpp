// SPDX-License-Identifier: Apache-2.0
// What a program takes. CLI11 does the work in command_line.cpp and shows in no header: it takes longer
// to compile than most files of a tool do.
#pragma once

#include "base/options.hpp"
#include "base/text.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// What --help says: the examples first, then the options in the groups and the order of the man pages.
struct ListedOption {
    std::string names; // "-p,--pid"
    std::string type;  // what stands in the place of its value; empty for a flag
    std::string text;
};

struct ListedArgument {
    std::string name; // "INTERVAL"
    std::string text;
};

// No line has more than 100 columns. An option that command_line.cpp has no place for stands under "Other".
std::string help_text(std::string_view tool, std::string_view summary, std::string_view examples,
                      std::span<const ListedArgument> arguments, std::span<const ListedOption> options);

// Numbers and times on a command line: all of the text is one, or a sentence says what it should be.

// Throws UsageError, as all of these do.
template<class T>
T number_argument(std::string_view what, std::string_view text, T least, T most)
{
    const auto value = parse_number<T>(text);
    if (!value || !(*value >= least && *value <= most)) // a NaN is neither
        throw UsageError(fmt::format("{} must be a number from {} to {}, not '{}'", what, least, most, text));
    return *value;
}

// Of bytes: "500M", "1.5G".
uint64_t size_argument(std::string_view what, std::string_view text, uint64_t least, uint64_t most);

// Of time. A number has one of them behind it (250ms, 1.5m), or is one of those that are usual.
struct TimeUnit {
    std::string_view name;
    std::chrono::nanoseconds length;
};
inline constexpr TimeUnit time_units[] = {
    {"ns", std::chrono::nanoseconds(1)}, {"us", std::chrono::microseconds(1)}, {"ms", std::chrono::milliseconds(1)},
    {"s", std::chrono::seconds(1)},      {"m", std::chrono::minutes(1)},       {"h", std::chrono::hours(1)},
    {"d", std::chrono::hours(24)},
};

// In the largest unit that has a whole number of it: "10ms", "7d".
std::string duration_text(std::chrono::nanoseconds time);

std::chrono::nanoseconds time_argument(std::string_view what, std::string_view text, std::string_view usual,
                                       std::chrono::nanoseconds least, std::chrono::nanoseconds most);

} // namespace gpusnoop

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace gpusnoop {

// Names are those of CLI11, "-l,--least"; one that is taken is refused. type: what the help shows in a value's place.
// Values are written by parse().
class CommandLine {
public:
    using Take = std::function<void(const std::string& text)>; // throws UsageError
    template<class T>
    struct Range {
        T least, most;
    };

    CommandLine(std::string_view name, std::string_view summary, std::string_view examples);
    ~CommandLine();
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    const std::string& name() const { return name_; }

    void flag(const std::string& names, const std::string& help, bool& given);
    void flag(const std::string& names, const std::string& help, int& times);

    void text(const std::string& names, const std::string& type, const std::string& help, std::string& value);
    void text(const std::string& names, const std::string& type, const std::string& help,
              std::optional<std::string>& value);
    void text(const std::string& names, const std::string& type, const std::string& help, const Take& take);

    // May be given several times: take gets one after the other, commas and all.
    void texts(const std::string& names, const std::string& type, const std::string& help, const Take& take);
    // Separated by commas.
    void list(const std::string& names, const std::string& type, const std::string& help,
              std::vector<std::string>& values);

    void number(const std::string& names, const std::string& type, const std::string& help, uint32_t& value,
                Range<int> range);
    // The option may stand without its number, and means usual then.
    void number_or_none(const std::string& names, const std::string& type, const std::string& help,
                        std::optional<uint32_t>& value, Range<int> range, const std::string& usual);

    // Not an option, but known by its place.
    void argument(const std::string& name, const std::string& help, const Take& take);

    // An option that all tools share and this one cannot mean: --help does not list it, and who gives it reads why.
    void refuse(const std::string& long_name, const std::string& why);

    // Of an option that all tools share, what --help says of it.
    void explain(std::string_view long_name, const std::string& help);

    // Throws UsageError, and Answer where that was all: --help or --version.
    void parse(int argc, char** argv);

    // Of the options that were given, the long names: "--pid".
    std::vector<std::string> given() const;

private:
    CLI::Option* listed(const std::string& names, const std::string& type, const std::string& help,
                        CLI::Option* option);

    std::string name_;
    std::string summary_;
    std::string examples_;
    std::unique_ptr<CLI::App> app_;
    std::vector<ListedArgument> arguments_;
    std::vector<ListedOption> options_;
    struct Refused {
        const CLI::Option* option;
        std::string why;
    };
    std::vector<Refused> refused_;
};

} // namespace gpusnoop
