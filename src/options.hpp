// SPDX-License-Identifier: Apache-2.0
// The command line that all tools share. A letter means the same in every tool.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// The command line makes no sense: exit 2.
class UsageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct Options {
    std::vector<pid_t> pids;
    pid_t tid = 0;
    std::string comm;
    std::string cgroup; // as it was asked for
    std::string host_root = "/";
    std::optional<std::chrono::nanoseconds> interval;
    uint64_t count = 0; // reports; 0: no limit
    std::optional<std::chrono::nanoseconds> duration;
    bool timestamps = false;
    bool json = false;
    bool failed_only = false;
    bool user_stacks = false;
    bool milliseconds = false;
    bool nanoseconds = false;
    bool per_process = false;
    bool per_thread = false;
    bool extra_columns = false;
    int verbosity = 0;
    size_t rows = 20;        // of a table; 0: all
    std::string attach;      // way by name; empty: the best one
    uint32_t ring_mb = 8;    // power of two
    uint32_t table_rows = 0; // of the kernel side; 0: by the number of CPUs

    // Nanoseconds in the unit that durations of histograms are counted in.
    uint64_t unit_ns() const { return nanoseconds ? 1 : milliseconds ? 1'000'000 : 1'000; }
    std::string_view unit_name() const { return nanoseconds ? "nsecs" : milliseconds ? "msecs" : "usecs"; }
};

// Adds the shared options. The tool adds its own afterwards; CLI11 refuses a letter that is taken. ways: what --attach
// takes, best first.
void add_shared_options(CLI::App& app, Options& options, std::span<const std::string_view> ways);

// Parses; --help and --version print to stdout. Returns the exit code where the run ends here: 0 for those two, 2 for
// a usage error, which has been printed.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv, Options& options);

} // namespace gpusnoop
