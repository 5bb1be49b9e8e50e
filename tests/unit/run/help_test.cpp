// SPDX-License-Identifier: Apache-2.0
// --help lists exactly the options that a tool accepts.
#include "run/command_line.hpp"

#include "tests/unit/run/parsed.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>
#include <sstream>

using namespace gpusnoop;

namespace {

Parsed parse(const NamedTool& tool, std::vector<std::string> words)
{
    if (tool.name == "cudatop")
        words.push_back("--batch"); // needs no terminal
    return parsed(tool, words);
}

std::vector<std::string> lines_of(const std::string& text)
{
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
        lines.push_back(line);
    return lines;
}

// Options that --help lists, such as "--pid", with the placeholder of their value, or "" if there is none.
std::map<std::string, std::string> listed(const NamedTool& tool)
{
    std::map<std::string, std::string> options;
    for (const std::string& line : lines_of(parse(tool, {"--help"}).answer)) {
        const bool is_option = line.starts_with("  -") || line.starts_with("      --");
        if (!is_option)
            continue;
        std::istringstream words(line.substr(line.find("--")));
        std::string name, type;
        words >> name >> type;
        options[name] = std::ranges::all_of(type, [](char c) { return !std::islower(c); }) ? type : "";
    }
    return options;
}

// Returns a valid command line with this option. The option's value depends on its type; options that it requires are
// added.
std::vector<std::string> valid_words(const NamedTool& tool, const std::string& option, const std::string& type)
{
    const std::map<std::string, std::string> by_option = {
        {"--attach", tool.name == "nvioctl" ? "kprobe" : "perf"},
        {"--api", "runtime"},
        {"--columns", "PID"},
        {"--sort", "pid"},
        {"--names", "full"},
        {"--graphs", "both"},
        {"--by", "pid"},
        {"--split", "busy"},
        {"--hist", tool.name == "cudasync"                                ? "duration"
                   : tool.name == "cudagap"                               ? "gap"
                   : tool.name == "cudagraph"                             ? "launch"
                   : tool.name == "ncclwait"                              ? "skew"
                   : tool.name == "cudamemcpy" || tool.name == "gpualloc" ? "size"
                                                                          : "latency"},
        {"--ring-mb", "16"},
        {"--table-rows", "4096"},
        {"--live-entries", "4096"},
        {"--record-max", "1G"},
        {"--weight", "launches"},
        {"--user", "root"},
    };
    const std::map<std::string, std::string> by_type = {{"FOLDER", "/host"}, {"COMM", "name"}, {"CGROUP", "/x"},
                                                        {"FILE", "off"},     {"TEXT", "x"},    {"[N]", ""}};
    std::vector<std::string> words{option};
    if (by_option.contains(option))
        words.push_back(by_option.at(option));
    else if (!by_type.contains(type))
        words.push_back("5");
    else if (!by_type.at(type).empty())
        words.push_back(by_type.at(type));
    if (type.empty())
        words.resize(1);
    if (option == "--textfile") // the file's name must end with .prom
        words = {option, "x.prom"};
    if (option == "--per-process" || option == "--per-thread")
        words.insert(words.end(), {"--hist", by_option.at("--hist")});
    if (option == "--weight")
        words.push_back("--folded");
    if (option == "--trace")
        words.push_back("--events");
    if (option == "--older")
        words.push_back("--leaks");
    if (option == "--at")
        words.insert(words.end(), {"--replay", "x"});
    if (option == "--user")
        words.insert(words.end(), {"--", "true"});
    if (option == "--warm-up")
        words.push_back("--storms");
    return words;
}

} // namespace

TEST_CASE("each option that --help lists is accepted")
{
    for (const NamedTool& tool : tools)
        for (const auto& [option, type] : listed(tool)) {
            INFO(tool.name << " " << option << " " << type);
            CHECK(parse(tool, valid_words(tool, option, type)).refusal == "");
        }
}

TEST_CASE("an option that --help does not list is refused")
{
    std::map<std::string, std::string> all;
    for (const NamedTool& tool : tools)
        all.merge(listed(tool));
    for (const NamedTool& tool : tools) {
        const auto own = listed(tool);
        CHECK(own.size() > 20);
        for (const auto& [option, type] : all)
            if (!own.contains(option)) {
                INFO(tool.name << " " << option);
                CHECK(parse(tool, valid_words(tool, option, type)).refusal != "");
            }
    }
}

TEST_CASE("each option has a group in --help, and each line fits a terminal")
{
    for (const NamedTool& tool : tools) {
        const std::vector<std::string> lines = lines_of(parse(tool, {"--help"}).answer);
        INFO(tool.name);
        CHECK(std::ranges::find(lines, "Other:") == lines.end());
        CHECK(std::ranges::find(lines, "Examples:") < std::ranges::find(lines, "Scope:"));
        for (const std::string& line : lines) {
            INFO(line);
            CHECK(line.size() <= 100);
        }
    }
}

TEST_CASE("help: a long text is wrapped, and an option without a group is listed last")
{
    const std::string long_text = "a text of enough words that it does not fit beside its option, and continues on the "
                                  "next line, below its start";
    const std::vector<ListedArgument> arguments{{"INTERVAL", "seconds"}};
    const std::vector<ListedOption> options{
        {"--no-such-place", "", "new"}, {"--by", "WHAT", long_text}, {"-p,--pid", "PID", "only this"}};
    CHECK(help_text("tool", "Shows it.", "  tool 1  # example\n", arguments, options) ==
          "Shows it.\n"
          "\n"
          "Usage: tool [OPTION...] [INTERVAL [COUNT]] [-- PROGRAM [ARG...]]\n"
          "\n"
          "Examples:\n"
          "  tool 1  # example\n"
          "\n"
          "Arguments:\n"
          "  INTERVAL                    seconds\n"
          "  PROGRAM [ARG...]            program to start and trace, with its children, from the first call\n"
          "\n"
          "Scope:\n"
          "  -p, --pid PID               only this\n"
          "\n"
          "Output:\n"
          "      --by WHAT               a text of enough words that it does not fit beside its option, and\n"
          "                              continues on the next line, below its start\n"
          "\n"
          "Other:\n"
          "      --no-such-place         new\n");
}
