// SPDX-License-Identifier: Apache-2.0
// The command line that all tools share. A letter means the same in every tool.
#pragma once

#include "names/name_options.hpp"
#include "util/options.hpp"

#include <span>
#include <string_view>

namespace gpusnoop {

class CommandLine;

// The tool adds its own afterwards. ways: what --attach takes, best first.
void add_shared_options(CommandLine& line, Options& options, std::span<const std::string_view> ways,
                        std::string_view without_interval);

// Of tools that show names of kernels.
void add_name_options(CommandLine& line, NameOptions& options);

// After parsing: throws UsageError where they contradict each other.
// Of a tool without stacks: which is a reason for each of what is drawn of those.
void refuse_flame_options(CommandLine& line, std::string_view why);

void check_shared_options(const Options& options);

} // namespace gpusnoop
