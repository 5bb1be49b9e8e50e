// SPDX-License-Identifier: Apache-2.0
// Reports of --leaks and --exited: memory held, by call stack.
#pragma once

#include "rows/held_table.hpp"
#include "rows/report.hpp"
#include "rows/who.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gpusnoop::gpualloc {

using StackOf = std::function<Frames(const LeakKey&)>;

void print_leaks(Output& output, const std::map<LeakKey, Leak>& leaks, const Options& options, Processes& processes,
                 uint64_t wall_ns, double seconds, const StackOf& stack_of);

// Prints one line for the process, then one line for each stack that holds memory.
void print_exit(Output& output, const ImageId& image, const Holdings& holdings, Processes& processes, uint64_t wall_ns,
                const StackOf& stack_of);

// The columns of --leaks and of --exited.
std::vector<Column> leak_columns();
std::vector<Column> exit_columns();

} // namespace gpusnoop::gpualloc
