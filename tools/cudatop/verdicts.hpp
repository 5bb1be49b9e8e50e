// SPDX-License-Identifier: Apache-2.0
// What is wrong, in words: above the table of a screen, below one of a batch, and instead of one (--why).
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

// The worst of what is wrong with a row, or a part of it; null: nothing.
const Verdict* worst(const Diagnosis& diagnosis, const Key& key, const Group& group);

// rows: those of the snapshot, by the group that they show.
void add_verdicts(Snapshot& snapshot, std::span<const Verdict* const> verdicts, const std::map<Key, Group>& rows);

// What rows about verdicts are made of.
std::span<const Column> verdict_columns();

// Of an interval; nothing where nothing is wrong.
void print_verdicts(Output& output, std::span<const Verdict* const> verdicts, const Snapshot& snapshot);
void print_verdicts(Output& output, std::span<const Row> rows, const Snapshot& snapshot);

// A verdict in full: with the frames of its stack, innermost first.
struct WhyLine {
    Verdict verdict;
    std::vector<std::string> frames;
};
struct Watched {
    size_t processes = 0;
    size_t exited = 0; // of them
    double seconds = 0;
    uint64_t dropped = 0; // lines about processes that exited
};
// With the owner and the next command of each. One row that says so where nothing is wrong.
void print_why(Output& output, std::span<const WhyLine> lines, const Snapshot& snapshot, const Watched& watched);

// Verdicts about processes that exited while --why watched, beside those of the last interval.
class ExitedVerdicts {
public:
    using Frames = std::function<std::vector<std::string>(const Verdict&)>;

    // Verdicts of an interval that is not the last one.
    void add(std::span<const Verdict* const> verdicts, const Frames& frames);
    // Both, the worst first. Of a restart loop, one process stands for all.
    std::vector<WhyLine> with(std::span<const Verdict* const> of_last_interval, const Frames& frames);
    // Lines that there were too many of.
    uint64_t dropped() const { return dropped_; }

    // Processes that have been forgotten since they exited.
    void forgot_process() { processes_++; }
    size_t processes() const { return processes_; }

private:
    void fold();

    std::deque<WhyLine> lines_; // the oldest first
    std::set<uint64_t> loops_;  // groups of processes that restart each other
    size_t processes_ = 0;
    uint64_t dropped_ = 0;
};

} // namespace gpusnoop::cudatop
