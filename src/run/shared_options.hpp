// SPDX-License-Identifier: Apache-2.0
// Options that all tools share. An option letter has the same meaning in every tool.
#pragma once

#include "base/options.hpp"
#include "names/kernel_text.hpp"

#include <span>
#include <string_view>

namespace gpusnoop {

class CommandLine;

// Call before the tool adds its own options. ways: values of --attach, best first. without_interval: text for --help
// about an omitted INTERVAL.
void add_shared_options(CommandLine& line, Options& options, std::span<const std::string_view> ways,
                        std::string_view without_interval);

// For tools that show kernel names.
void add_name_options(CommandLine& line, NameOptions& options);

// For tools that export metrics.
void add_metrics_options(CommandLine& line, MetricsOptions& options);

// Rejects all flame graph options, for tools without stacks.
void refuse_flame_options(CommandLine& line, std::string_view why);

// Call after parsing. They throw UsageError if options conflict.
void check_replay(const CommandLine& line, const Options& options);
void check_shared_options(const Options& options);

} // namespace gpusnoop
