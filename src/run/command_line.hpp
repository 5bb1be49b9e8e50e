// SPDX-License-Identifier: Apache-2.0
// Command line parser, and the text of --help. Only command_line.cpp includes CLI11, because it is slow to compile.
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

// An option as listed by --help. command_line.cpp defines its group and position.
struct ListedOption {
    std::string names; // "-p,--pid"
    std::string type;  // placeholder of the value, such as "PID"; empty for a flag
    std::string text;
};

struct ListedArgument {
    std::string name; // "INTERVAL"
    std::string text;
};

// The text of --help, at most 100 columns wide: examples, then options in the groups and order of the man pages.
// Options without a group in command_line.cpp are listed under "Other".
std::string help_text(std::string_view tool, std::string_view summary, std::string_view examples,
                      std::span<const ListedArgument> arguments, std::span<const ListedOption> options);

// Parsers of numbers, sizes and times on the command line. They throw UsageError unless the whole text is a value in
// the given range; the error message begins with `what`.

template<class T>
T number_argument(std::string_view what, std::string_view text, T least, T most)
{
    const auto value = parse_number<T>(text);
    if (!value || !(*value >= least && *value <= most)) // also rejects NaN
        throw UsageError(fmt::format("{} must be a number from {} to {}, not '{}'", what, least, most, text));
    return *value;
}

// Parses a size such as "500M" or "1.5G" to bytes.
uint64_t size_argument(std::string_view what, std::string_view text, uint64_t least, uint64_t most);

// Units that may follow the number in time_argument(), as in 250ms or 1.5m. A number without a unit is in the default
// unit.
struct TimeUnit {
    std::string_view name;
    std::chrono::nanoseconds length;
};
inline constexpr TimeUnit time_units[] = {
    {"ns", std::chrono::nanoseconds(1)}, {"us", std::chrono::microseconds(1)}, {"ms", std::chrono::milliseconds(1)},
    {"s", std::chrono::seconds(1)},      {"m", std::chrono::minutes(1)},       {"h", std::chrono::hours(1)},
    {"d", std::chrono::hours(24)},
};

// Text of a time in the largest unit that gives a whole number, such as "10ms" or "7d".
std::string duration_text(std::chrono::nanoseconds time);

// Parses a time. usual: the default unit, "s" or "us".
std::chrono::nanoseconds time_argument(std::string_view what, std::string_view text, std::string_view usual,
                                       std::chrono::nanoseconds least, std::chrono::nanoseconds most);

} // namespace gpusnoop

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace gpusnoop {

// Options of a program. Option names have the form "-l,--least", and must be unique. type: placeholder of the value in
// --help. parse() stores the values, or passes them to handlers.
class CommandLine {
public:
    using Handler = std::function<void(const std::string& text)>; // throws UsageError
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
    void text(const std::string& names, const std::string& type, const std::string& help, const Handler& handler);

    // An option that may be given several times. The handler is called for each value; values are not split at commas.
    void texts(const std::string& names, const std::string& type, const std::string& help, const Handler& handler);
    // An option whose value is a comma-separated list.
    void list(const std::string& names, const std::string& type, const std::string& help,
              std::vector<std::string>& values);

    void number(const std::string& names, const std::string& type, const std::string& help, uint32_t& value,
                Range<int> range);
    // An option whose value may be omitted. The value is then `usual`.
    void number_or_none(const std::string& names, const std::string& type, const std::string& help,
                        std::optional<uint32_t>& value, Range<int> range, const std::string& usual);

    // A positional argument.
    void argument(const std::string& name, const std::string& help, const Handler& handler);

    // Makes parse() reject a shared option that this tool does not support, with `why` as the message, and removes it
    // from --help.
    void refuse(const std::string& long_name, const std::string& why);

    // Replaces the --help text of a shared option.
    void explain(std::string_view long_name, const std::string& help);

    // Throws UsageError if the arguments are invalid. For --help and --version, throws Answer with the text to print.
    void parse(int argc, char** argv);

    // Long names of the options that the user gave, such as "--pid".
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
