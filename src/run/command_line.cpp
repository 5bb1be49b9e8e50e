// SPDX-License-Identifier: Apache-2.0
#include "run/command_line.hpp"

#include "base/options.hpp"
#include "base/text.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <vector>

namespace gpusnoop {

namespace {

struct OptionGroup {
    std::string_view title;
    std::vector<std::string_view> options; // long names of options, including those that only some tools have
};

const OptionGroup groups[] = {
    {"Scope",
     {"pid", "tid", "cgroup", "name", "user", "failed", "latency", "least", "interrupts", "cheap", "max-overhead",
      "api", "no-monitor", "xid"}},
    {"Output",
     {"batch",       "why",      "tcp",     "files",         "by",          "per",        "fail-if",      "split",
      "prices",      "teams",    "summary", "storms",        "warm-up",     "events",     "stalled",      "ras",
      "leaks",       "older",    "exited",  "hist",          "per-process", "per-thread", "milliseconds", "nanoseconds",
      "user-stacks", "native",   "depth",   "skip",          "sort",        "rows",       "filter",       "tree",
      "graphs",      "names",    "columns", "extra-columns", "timestamp",   "json",       "csv",          "record",
      "record-max",  "replay",   "at",      "svg",           "pprof",       "speedscope", "folded",       "weight",
      "trace",       "textfile", "listen"}},
    {"Duration", {"duration", "interval", "state"}},
    {"Advanced",
     {"live-entries", "nvml", "dcgm", "no-cache", "no-config", "verbose", "attach", "host-root", "ring-mb",
      "table-rows", "info", "clean", "help", "version"}},
};

constexpr size_t width = 100;
constexpr size_t text_column = 30;

// Returns "pid" for "-p,--pid".
std::string_view long_name_of(const ListedOption* option)
{
    return std::string_view(option->names).substr(option->names.find("--") + 2);
}

// Appends an entry of --help: the term and its wrapped text. The text is beside the term, or below it if the term is
// long.
void explain(std::string& out, std::string_view term, std::string_view text)
{
    std::string line(term);
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

// Returns "  -p, --pid PID[,PID]". Long names are aligned even if an option has no letter.
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
    // Tools that take an interval are tracers, and can start a program. Other tools read files.
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
        explain(out, "  PROGRAM [ARG...]", "program to start and trace, with its children, from the first call");
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

std::string duration_text(std::chrono::nanoseconds time)
{
    for (size_t i = std::size(time_units); i-- > 0;)
        if (time.count() && time % time_units[i].length == std::chrono::nanoseconds::zero())
            return fmt::format("{}{}", time / time_units[i].length, time_units[i].name);
    return "0";
}

uint64_t size_argument(std::string_view what, std::string_view text, uint64_t least, uint64_t most)
{
    constexpr std::string_view units = "KMGT";
    std::string_view unit = text;
    const auto value = consume_number<double>(unit);
    if (value && unit.size() <= 1 && (unit.empty() || units.find(unit.front()) != units.npos)) {
        const double bytes =
            std::ldexp(*value, unit.empty() ? 0 : 10 * (static_cast<int>(units.find(unit.front())) + 1));
        if (bytes >= static_cast<double>(least) && bytes <= static_cast<double>(most)) // false for NaN
            return static_cast<uint64_t>(bytes);
    }
    throw UsageError(fmt::format("{} must be a size from {} to {}, such as 500M or 2G, not '{}'", what,
                                 human_bytes(least), human_bytes(most), text));
}

std::chrono::nanoseconds time_argument(std::string_view what, std::string_view text, std::string_view usual,
                                       std::chrono::nanoseconds least, std::chrono::nanoseconds most)
{
    std::string_view unit = text;
    const auto value = consume_number<double>(unit);
    if (unit.empty())
        unit = usual;
    const auto* found = std::ranges::find(time_units, unit, &TimeUnit::name);
    if (value && found != std::end(time_units)) {
        const double ns = *value * static_cast<double>(found->length.count());
        if (ns >= static_cast<double>(least.count()) && ns <= static_cast<double>(most.count())) // false for NaN
            return std::chrono::nanoseconds(std::llround(ns));
    }
    throw UsageError(fmt::format("{} must be a time from {} to {}, such as 5 ({}), 250ms or 5m, not '{}'", what,
                                 duration_text(least), duration_text(most), usual == "us" ? "microseconds" : "seconds",
                                 text));
}

namespace {

// Prefix of the internal names of positional arguments, because CLI11 2.4 does not allow an argument and a long option
// to have the same name.
constexpr std::string_view argument_prefix = "argument-";

// Converts a handler's UsageError to CLI11's own exception type, because CLI11 drops the messages of other exceptions.
template<class Value>
std::function<void(const Value&)> checked(std::function<void(const Value&)> handler)
{
    return [handler = std::move(handler)](const Value& value) {
        try {
            handler(value);
        } catch (const UsageError& error) {
            throw CLI::ValidationError("", error.what());
        }
    };
}

// Range check without a description, which CLI11 would add to its messages.
template<class T>
CLI::Validator within(CommandLine::Range<T> range)
{
    return CLI::Range(range.least, range.most).description("");
}

// List of all long names, "--pid, --tid, ..."
std::string options_of(const CLI::App& app)
{
    std::string all;
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames())
            if (!name.starts_with(argument_prefix))
                all += (all.empty() ? "--" : ", --") + name;
    return all;
}

} // namespace

CommandLine::CommandLine(std::string_view name, std::string_view summary, std::string_view examples)
    : name_(name), summary_(summary), examples_(examples), app_(std::make_unique<CLI::App>("", name_))
{
    listed("-h,--help", "", "print this help and exit", app_->set_help_flag("-h,--help"));
    listed("-V,--version", "", "print the version and exit", app_->set_version_flag("-V,--version", GPUSNOOP_VERSION));
}

CommandLine::~CommandLine() = default;

CLI::Option* CommandLine::listed(const std::string& names, const std::string& type, const std::string& help,
                                 CLI::Option* option)
{
    options_.push_back({names, type, help});
    return type.empty() ? option : option->type_name(type); // CLI11 also shows the type in its error messages
}

void CommandLine::flag(const std::string& names, const std::string& help, bool& given)
{
    listed(names, "", help, app_->add_flag(names, given));
}

void CommandLine::flag(const std::string& names, const std::string& help, int& times)
{
    listed(names, "", help, app_->add_flag(names, times));
}

void CommandLine::text(const std::string& names, const std::string& type, const std::string& help, std::string& value)
{
    listed(names, type, help, app_->add_option(names, value));
}

void CommandLine::text(const std::string& names, const std::string& type, const std::string& help,
                       std::optional<std::string>& value)
{
    listed(names, type, help, app_->add_option(names, value));
}

void CommandLine::text(const std::string& names, const std::string& type, const std::string& help,
                       const Handler& handler)
{
    listed(names, type, help, app_->add_option_function(names, checked(handler)));
}

void CommandLine::texts(const std::string& names, const std::string& type, const std::string& help,
                        const Handler& handler)
{
    using Texts = std::vector<std::string>;
    const std::function<void(const Texts&)> handle_all = [handler](const Texts& texts) {
        for (const std::string& text : texts)
            handler(text);
    };
    // Takes one value only, so that the next word is the first positional argument.
    listed(names, type, help, app_->add_option_function(names, checked(handle_all)))->allow_extra_args(false);
}

void CommandLine::list(const std::string& names, const std::string& type, const std::string& help,
                       std::vector<std::string>& values)
{
    listed(names, type, help, app_->add_option(names, values))->delimiter(',')->allow_extra_args(false);
}

void CommandLine::number(const std::string& names, const std::string& type, const std::string& help, uint32_t& value,
                         Range<int> range)
{
    listed(names, type, help, app_->add_option(names, value))->check(within(range));
}

void CommandLine::number_or_none(const std::string& names, const std::string& type, const std::string& help,
                                 std::optional<uint32_t>& value, Range<int> range, const std::string& usual)
{
    listed(names, "[" + type + "]", help, app_->add_option(names, value))
        ->expected(0, 1)
        ->default_str(usual)
        ->check(within(range));
}

void CommandLine::argument(const std::string& name, const std::string& help, const Handler& handler)
{
    app_->add_option_function(std::string(argument_prefix) + name, checked(handler));
    arguments_.push_back({name, help});
}

void CommandLine::refuse(const std::string& long_name, const std::string& why)
{
    refused_.push_back({app_->get_option(long_name), why});
    std::erase_if(options_, [&](const ListedOption& option) { return option.names.ends_with(long_name); });
}

void CommandLine::explain(std::string_view long_name, const std::string& help)
{
    for (ListedOption& option : options_)
        if (option.names.ends_with(long_name))
            option.text = help;
}

void CommandLine::parse(int argc, char** argv)
{
    try {
        app_->parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        throw Answer(help_text(name_, summary_, examples_, arguments_, options_));
    } catch (const CLI::CallForVersion&) {
        throw Answer(name_ + " " GPUSNOOP_VERSION "\n");
    } catch (const CLI::ParseError& error) {
        // CLI11 checks positional arguments before options: for an unknown option "--colour red" it would complain
        // about red.
        for (int i = 1; i < argc; i++) {
            const std::string word(argv[i]), option = word.substr(0, word.find('='));
            if (option.size() > 2 && option.starts_with("--") && !app_->get_option_no_throw(option))
                throw UsageError("there is no option " + option + suggestion(option, options_of(*app_)));
        }
        std::string_view what = error.what();
        throw UsageError(std::string(what.starts_with(": ") ? what.substr(2) : what));
    }
    for (const Refused& refused : refused_)
        if (refused.option->count())
            throw UsageError(refused.why);
}

std::vector<std::string> CommandLine::given() const
{
    std::vector<std::string> all;
    for (const CLI::Option* option : app_->get_options())
        for (const std::string& name : option->get_lnames())
            if (option->count() && !name.starts_with(argument_prefix))
                all.push_back("--" + name);
    return all;
}

} // namespace gpusnoop
