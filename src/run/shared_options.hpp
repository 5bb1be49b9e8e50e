// SPDX-License-Identifier: Apache-2.0
// The command line that all tools share. A letter means the same in every tool.
#pragma once

#include "base/options.hpp"
#include "names/kernel_text.hpp"

#include <span>
#include <string_view>

namespace gpusnoop {

class CommandLine;

// The tool adds its own afterwards. ways: what --attach takes, best first.
void add_shared_options(CommandLine& line, Options& options, std::span<const std::string_view> ways,
                        std::string_view without_interval);

// Of tools that show names of kernels.
void add_name_options(CommandLine& line, NameOptions& options);

// Of tools whose reports are metrics, too.
void add_metrics_options(CommandLine& line, MetricsOptions& options);

// Of a tool without stacks: which is a reason for each of what is drawn of those.
void refuse_flame_options(CommandLine& line, std::string_view why);

// After parsing: they throw UsageError where options contradict each other.
void check_replay(const CommandLine& line, const Options& options);
void check_shared_options(const Options& options);

} // namespace gpusnoop
