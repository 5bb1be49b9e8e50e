// SPDX-License-Identifier: Apache-2.0
// Options shared by all tools, as plain data. run/shared_options.hpp defines their command-line syntax.
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

// An invalid command line, for which the tool exits with 2.
class UsageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Thrown to print a text instead of tracing, e.g. for --help. The tool then exits with 0.
struct Answer {
    std::string text;
    explicit Answer(std::string printed) : text(std::move(printed)) {}
};

struct Options {
    std::vector<pid_t> pids;
    std::vector<std::string> program; // command line to start and trace
    std::optional<UserAccount> user;  // account under which `program` runs; nullopt: that of the tool
    pid_t tid = 0;
    std::string comm;
    std::string cgroup; // as given on the command line
    std::string host_root = "/";
    std::optional<std::chrono::nanoseconds> interval;
    uint64_t count = 0; // number of reports; 0: no limit
    std::optional<std::chrono::nanoseconds> duration;
    bool timestamps = false;
    bool json = false;
    std::string record; // file for a JSON recording, written in addition to the usual output; empty: none
    uint64_t record_max = uint64_t{1} << 30; // maximum size of the recording in bytes, including FILE.1
    std::string replay;                      // recording to show instead of tracing; empty: none
    std::string replay_at;                   // time at which the replay starts; empty: the beginning
    std::string trace;                       // file for a timeline; empty: none
    std::vector<std::pair<std::string_view, std::string>> flames; // flame graphs: option name and output file
    bool folded = false;                                          // print a flame graph instead of tables
    std::string weight;               // metric for the width of flame graph frames; empty: the default
    std::vector<std::string> columns; // columns of text tables (rows/field.hpp)
    bool failed_only = false;
    bool user_stacks = false;
    bool milliseconds = false;
    bool nanoseconds = false;
    bool per_process = false;
    bool per_thread = false;
    bool extra_columns = false;
    int verbosity = 0;
    size_t rows = 20;        // rows per table; 0: all
    std::string attach;      // name of a tier (a way of attaching); empty: the best tier available
    uint32_t ring_mb = 8;    // a power of two
    uint32_t table_rows = 0; // rows of the BPF table of calls; 0: chosen by the number of CPUs
    bool clean = false;      // only clean up after runs that were killed, and exit
    bool info = false;       // only print what this machine supports and what the tool would use, and exit

    bool draws_flames() const { return folded || !flames.empty(); }
    bool writes_json() const { return json || !record.empty(); }

    // Unit of duration histograms.
    uint64_t unit_ns() const { return nanoseconds ? 1 : milliseconds ? 1'000'000 : 1'000; }
    std::string_view unit_name() const { return nanoseconds ? "nsecs" : milliseconds ? "msecs" : "usecs"; }
};

// A tool's options for showing its recordings.
struct ReplayView {
    std::optional<std::string> by{}; // keys to group rows by; nullopt: as recorded
    std::string sort{};              // column to sort by; empty: as recorded
    std::string usual_sort{};        // column by which merged rows are sorted if `sort` is empty
    std::string names = "short";     // style of kernel names
    bool adds_up = true;             // whether rows of several reports can be merged
};

// Destinations of metrics.
struct MetricsOptions {
    std::string textfile; // empty: none
    std::string listen;   // address of the HTTP server; empty: none

    bool wanted() const { return !textfile.empty() || !listen.empty(); } // if true, no tables are printed
};

} // namespace gpusnoop
