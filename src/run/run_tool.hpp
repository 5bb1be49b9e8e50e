// SPDX-License-Identifier: Apache-2.0
// From the command line to the exit status: tools and their runs meet here, and exceptions become sentences.
#pragma once

#include "run/tool.hpp"

#include <functional>
#include <memory>
#include <string_view>

namespace gpusnoop {

// What the command line asks for. Throws UsageError where it makes no sense, and Answer where it asks for help or a
// list.
RunPlan plan_run(int argc, char** argv, Tool& tool, Options& options);

// The life of a process that traces nothing: its exit status, which is what body returns, or 0 where that throws an
// Answer. Whatever else is thrown becomes a sentence.
int run_reader(std::string_view name, const std::function<int()>& body);

// The life of one that traces. Whatever is thrown, by make too, becomes a sentence.
int run_tool(int argc, char** argv, const std::function<std::unique_ptr<Tool>()>& make);

} // namespace gpusnoop
