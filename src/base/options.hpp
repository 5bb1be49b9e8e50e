// SPDX-License-Identifier: Apache-2.0
// What all tools can be asked for. How it is asked: shared_options.hpp.
#pragma once

#include "base/privileges.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gpusnoop {

// The command line makes no sense: exit 2.
class UsageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// What the command line asks to be told, in place of a run: exit 0.
struct Answer {
    std::string text;
    explicit Answer(std::string what) : text(std::move(what)) {}
};

struct Options {
    std::vector<pid_t> pids;
    std::vector<std::string> program; // to be started and traced, with its arguments
    std::optional<UserAccount> user;  // that the program runs as; nullopt: as the tool was started
    pid_t tid = 0;
    std::string comm;
    std::string cgroup; // as it was asked for
    std::string host_root = "/";
    std::optional<std::chrono::nanoseconds> interval;
    uint64_t count = 0; // reports; 0: no limit
    std::optional<std::chrono::nanoseconds> duration;
    bool timestamps = false;
    bool json = false;
    std::string record;                      // the file that JSON goes to, beside what is shown; empty: none
    uint64_t record_max = uint64_t{1} << 30; // bytes of it, and of the one that it replaces
    std::string replay;                      // the recording that is shown in place of what goes on; empty: none
    std::string replay_at;                   // from which time on; empty: its begin
    std::string trace;                       // the file that a timeline of lines goes to; empty: none
    std::vector<std::pair<std::string_view, std::string>> flames; // files of flame graphs, by option
    bool folded = false;                                          // a flame graph in place of what is shown
    std::string weight;                                           // what flames are as wide as; empty: what is usual
    std::vector<std::string> columns;                             // of tables of text (rows/field.hpp)
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
    bool clean = false;      // remove what killed runs have left, and do nothing else
    bool info = false;       // say what this machine offers and what the tool takes, and do nothing else

    bool draws_flames() const { return folded || !flames.empty(); }
    bool writes_json() const { return json || !record.empty(); }

    // Nanoseconds in the unit that durations of histograms are counted in.
    uint64_t unit_ns() const { return nanoseconds ? 1 : milliseconds ? 1'000'000 : 1'000; }
    std::string_view unit_name() const { return nanoseconds ? "nsecs" : milliseconds ? "msecs" : "usecs"; }
};

// What a tool was asked for, beside what all tools are.
struct ReplayView {
    std::optional<std::string> by{}; // nullopt: as recorded
    std::string sort{};              // empty: as recorded
    std::string usual_sort{};        // of rows that are added up
    std::string names = "short";     // how kernels are named
    bool adds_up = true;             // false: its rows are shown as they are, or not at all
};

// Where the metrics of a run go.
struct MetricsOptions {
    std::string textfile; // empty: none
    std::string listen;   // where they can be asked for; empty: nowhere

    bool wanted() const { return !textfile.empty() || !listen.empty(); } // in place of tables
};

} // namespace gpusnoop
