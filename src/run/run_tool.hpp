// SPDX-License-Identifier: Apache-2.0
// Main functions of the programs, from the command line to the exit status. They print exceptions as error messages.
#pragma once

#include "run/tool.hpp"

#include <functional>
#include <memory>
#include <string_view>

namespace gpusnoop {

// Parses the command line. Throws UsageError if it is invalid, and Answer if it requests help or a list.
RunPlan plan_run(int argc, char** argv, Tool& tool, Options& options);

// Main function of a program that does not trace. Returns the exit status: the result of body, 0 if body throws an
// Answer, else an error status.
int run_reader(std::string_view name, const std::function<int()>& body);

// Main function of a tracer. make: creates the tool; may throw.
int run_tool(int argc, char** argv, const std::function<std::unique_ptr<Tool>()>& make);

} // namespace gpusnoop
