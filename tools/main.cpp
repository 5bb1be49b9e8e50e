// SPDX-License-Identifier: Apache-2.0
// Entry point: runs the tool named by argv[0], or by the first argument.
#include "base/error.hpp"
#include "run/run_tool.hpp"
#include "tools/tools.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace {

// Runs the tool or reader with this name; nullopt if there is none.
std::optional<int> run_called(std::string_view name, int argc, char** argv)
{
    for (const auto& second : gpusnoop::second_names)
        if (name == second.name)
            name = second.of;
    const auto* tool = std::ranges::find(gpusnoop::tools, name, &gpusnoop::NamedTool::name);
    if (tool != std::end(gpusnoop::tools))
        return gpusnoop::run_tool(argc, argv, tool->make);
    const auto* reader = std::ranges::find(gpusnoop::readers, name, &gpusnoop::NamedReader::name);
    if (reader != std::end(gpusnoop::readers))
        return gpusnoop::run_reader(reader->name, [&] { return reader->run(argc, argv); });
    return std::nullopt;
}

std::string_view last_part(std::string_view path)
{
    return path.substr(path.rfind('/') + 1); // npos + 1 is 0
}

} // namespace

int main(int argc, char** argv)
{
    if (argc > 0)
        if (const auto status = run_called(last_part(argv[0]), argc, argv))
            return *status;
    if (argc > 1)
        if (const auto status = run_called(argv[1], argc - 1, argv + 1))
            return *status;
    std::string usage = "usage: gpusnoop TOOL [OPTION...]\n\nTools:";
    for (const auto& each : gpusnoop::tools)
        usage += fmt::format(" {}", each.name);
    for (const auto& each : gpusnoop::readers)
        usage += fmt::format(" {}", each.name);
    usage += '\n';
    if (argc > 1 && (argv[1] == std::string_view("--help") || argv[1] == std::string_view("-h")))
        return gpusnoop::run_tool(argc, argv,
                                  [&]() -> std::unique_ptr<gpusnoop::Tool> { throw gpusnoop::Answer(usage); });
    gpusnoop::print_stderr(usage);
    return 2;
}
