// SPDX-License-Identifier: Apache-2.0
#include "run/command_line.hpp"

#include "util/options.hpp"
#include "util/suggestion.hpp"

#include <CLI/CLI.hpp>

namespace gpusnoop {
namespace {

// CLI11 2.4 wants the names of arguments and of long options to differ: within the program those of arguments begin
// with this, and its user sees the others.
constexpr std::string_view argument_prefix = "argument-";

class HelpFormatter : public CLI::Formatter {
public:
    std::string make_option_name(const CLI::Option* option, bool is_argument) const override
    {
        std::string name = CLI::Formatter::make_option_name(option, is_argument);
        return name.starts_with(argument_prefix) ? name.substr(argument_prefix.size()) : name;
    }
};

// CLI11 turns exceptions other than its own into failures without a sentence.
template<class Value>
std::function<void(const Value&)> checked(std::function<void(const Value&)> take)
{
    return [take = std::move(take)](const Value& value) {
        try {
            take(value);
        } catch (const UsageError& error) {
            throw CLI::ValidationError("", error.what());
        }
    };
}

// CLI11 would show the range in the help, in words of its own.
template<class T>
CLI::Validator within(CommandLine::Range<T> range)
{
    return CLI::Range(range.least, range.most).description("");
}

// "--pid, --tid"
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
    : name_(name), app_(std::make_unique<CLI::App>(std::string(summary), name_))
{
    app_->footer("Examples:\n" + std::string(examples));
    app_->formatter(std::make_shared<HelpFormatter>());
}

CommandLine::~CommandLine() = default;

void CommandLine::flag(const std::string& names, const std::string& help, bool& given)
{
    app_->add_flag(names, given, help);
}

void CommandLine::flag(const std::string& names, const std::string& help, int& times)
{
    app_->add_flag(names, times, help);
}

void CommandLine::text(const std::string& names, const std::string& type, const std::string& help, std::string& value)
{
    app_->add_option(names, value, help)->type_name(type);
}

void CommandLine::text(const std::string& names, const std::string& type, const std::string& help,
                       std::optional<std::string>& value)
{
    app_->add_option(names, value, help)->type_name(type);
}

void CommandLine::text(const std::string& names, const std::string& type, const std::string& help, const Take& take,
                       const std::string& remark)
{
    CLI::Option* option = app_->add_option_function(names, checked(take), help)->type_name(type);
    if (!remark.empty())
        option->option_text(type + " " + remark);
}

void CommandLine::texts(const std::string& names, const std::string& type, const std::string& help, const Take& take)
{
    using Texts = std::vector<std::string>;
    const std::function<void(const Texts&)> take_all = [take](const Texts& texts) {
        for (const std::string& text : texts)
            take(text);
    };
    // What follows the text is the first argument, and no further text.
    app_->add_option_function(names, checked(take_all), help)->type_name(type)->allow_extra_args(false);
}

void CommandLine::list(const std::string& names, const std::string& type, const std::string& help,
                       std::vector<std::string>& values)
{
    app_->add_option(names, values, help)->delimiter(',')->type_name(type)->allow_extra_args(false);
}

void CommandLine::number(const std::string& names, const std::string& type, const std::string& help, uint32_t& value,
                         Range<int> range)
{
    app_->add_option(names, value, help)->check(within(range))->type_name(type);
}

void CommandLine::number_or_none(const std::string& names, const std::string& type, const std::string& help,
                                 std::optional<uint32_t>& value, Range<int> range, const std::string& usual)
{
    app_->add_option(names, value, help)->expected(0, 1)->default_str(usual)->check(within(range))->type_name(type);
}

void CommandLine::argument(const std::string& name, const std::string& type, const std::string& help, const Take& take,
                           const std::string& remark)
{
    text(std::string(argument_prefix) + name, type, help, take, remark);
}

void CommandLine::parse(int argc, char** argv)
{
    app_->set_version_flag("-V,--version", GPUSNOOP_VERSION);
    try {
        app_->parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        throw Answer(app_->help());
    } catch (const CLI::CallForVersion&) {
        throw Answer(name_ + " " GPUSNOOP_VERSION "\n");
    } catch (const CLI::ParseError& error) {
        // CLI11 looks at what comes behind first: in "--colour red" it would object to red.
        for (int i = 1; i < argc; i++) {
            const std::string word(argv[i]), option = word.substr(0, word.find('='));
            if (option.size() > 2 && option.starts_with("--") && !app_->get_option_no_throw(option))
                throw UsageError("there is no option " + option + suggestion(option, options_of(*app_)));
        }
        std::string_view what = error.what();
        throw UsageError(std::string(what.starts_with(": ") ? what.substr(2) : what));
    }
}

} // namespace gpusnoop
