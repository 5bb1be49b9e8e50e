// SPDX-License-Identifier: Apache-2.0
// The program: the tool whose name it was called by, or whose name is its first argument.
#include "tools.hpp"
#include "util/error.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <string_view>

namespace {

const gpusnoop::NamedTool* tool_called(std::string_view name)
{
    const auto* tool = std::ranges::find(gpusnoop::tools, name, &gpusnoop::NamedTool::name);
    return tool == std::end(gpusnoop::tools) ? nullptr : tool;
}

std::string_view last_part(std::string_view path)
{
    return path.substr(path.rfind('/') + 1); // npos + 1 is 0
}

} // namespace

int main(int argc, char** argv)
{
    const auto* tool = argc > 0 ? tool_called(last_part(argv[0])) : nullptr;
    if (!tool && argc > 1 && (tool = tool_called(argv[1]))) {
        argc--;
        argv++;
    }
    if (tool)
        return gpusnoop::run_tool(argc, argv, tool->make);
    std::string usage = "usage: gpusnoop TOOL [OPTION...]\n\nTools:";
    for (const auto& each : gpusnoop::tools)
        usage += fmt::format(" {}", each.name);
    usage += '\n';
    if (argc > 1 && (argv[1] == std::string_view("--help") || argv[1] == std::string_view("-h")))
        return gpusnoop::run_tool(argc, argv,
                                  [&]() -> std::unique_ptr<gpusnoop::Tool> { throw gpusnoop::Answer(usage); });
    gpusnoop::say(usage);
    return 2;
}
