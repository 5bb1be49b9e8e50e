// SPDX-License-Identifier: Apache-2.0
// What has leaked, and what was held at the end, by call stack.
#pragma once

#include "held_table.hpp"
#include "options.hpp"
#include "output.hpp"
#include "processes.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gpusnoop::gpualloc {

using StackOf = std::function<std::vector<std::string>(const LeakKey&)>;

void print_leaks(Output& output, const std::map<LeakKey, Leak>& leaks, const Options& options, Processes& processes,
                 uint64_t wall_ns, double seconds, const StackOf& stack_of);

// One line for the process, then one for each stack that holds memory.
void print_exit(Output& output, const ImageId& image, const Holdings& holdings, Processes& processes, uint64_t wall_ns,
                const StackOf& stack_of);

} // namespace gpusnoop::gpualloc
