// SPDX-License-Identifier: Apache-2.0
// Output of verdicts: above the table on a screen, below it with -b, and instead of it with --why.
#pragma once

#include "rows/output.hpp"
#include "screen/snapshot.hpp"
#include "tools/cudatop/diagnosis.hpp"
#include "tools/cudatop/groups.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop::cudatop {

// Returns the worst verdict on processes or threads of a row; null if there is none.
const Verdict* worst(const Diagnosis& diagnosis, const Key& key, const Group& group);

// Adds verdicts to the snapshot. rows: the snapshot's rows, to find the rows that each verdict is about.
void add_verdicts(Snapshot& snapshot, std::span<const Verdict* const> verdicts, const std::map<Key, Group>& rows);

std::span<const Column> verdict_columns();

// Prints the verdicts of an interval, or nothing if there are none.
void print_verdicts(Output& output, std::span<const Verdict* const> verdicts, const Snapshot& snapshot);
void print_verdicts(Output& output, std::span<const Row> rows, const Snapshot& snapshot);

struct WhyLine {
    Verdict verdict;
    std::vector<std::string> frames; // innermost first
};
struct Watched {
    size_t processes = 0; // number of processes, including exited ones
    size_t exited = 0;
    double seconds = 0;
    uint64_t dropped = 0; // number of dropped verdicts on exited processes
};
// Prints each verdict with its owner and the command to type next. Without verdicts, reports that there is no problem.
void print_why(Output& output, std::span<const WhyLine> lines, const Snapshot& snapshot, const Watched& watched);

// Keeps the verdicts on processes that exit during --why, and merges them with the verdicts of the last interval.
class ExitedVerdicts {
public:
    using Frames = std::function<std::vector<std::string>(const Verdict&)>;

    // Adds the verdicts of an interval. Do not call it for the last interval, whose verdicts are passed to with().
    void add(std::span<const Verdict* const> verdicts, const Frames& frames);
    // Returns all verdicts, worst first. A restart loop is represented by its newest process.
    std::vector<WhyLine> with(std::span<const Verdict* const> of_last_interval, const Frames& frames);
    uint64_t dropped() const { return dropped_; } // number of verdicts dropped because a limit was reached

    // Counts an exited process that is no longer tracked.
    void forgot_process() { processes_++; }
    size_t processes() const { return processes_; } // number of calls of forgot_process()

private:
    void fold();

    std::deque<WhyLine> lines_; // oldest first
    std::set<uint64_t> loops_;  // ids of process groups with a restart loop (Verdict::group)
    size_t processes_ = 0;
    uint64_t dropped_ = 0;
};

} // namespace gpusnoop::cudatop
