// SPDX-License-Identifier: Apache-2.0
// What is wrong, in words: above the table of a screen, below one of a batch, and instead of one (--why).
#pragma once

#include "diagnosis/diagnosis.hpp"
#include "groups.hpp"
#include "output/output.hpp"
#include "screen/snapshot.hpp"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop::cudatop {

// The worst of what is wrong with a row, or a part of it; null: nothing.
const Verdict* worst(const Diagnosis& diagnosis, const Key& key, const Group& group);

// rows: those of the snapshot, by the group that they show.
void add_verdicts(Snapshot& snapshot, std::span<const Verdict* const> verdicts, const std::map<Key, Group>& rows);

// Of an interval; nothing where nothing is wrong.
void print_verdicts(Output& output, std::span<const Verdict* const> verdicts, const Snapshot& snapshot);

// More of each: whose it is, where in the program, what to type next. A row that says so where nothing is wrong.
struct WhyContext {
    std::function<std::vector<std::string>(const Verdict&)> frames;
    size_t processes = 0; // that were looked at
    double seconds = 0;   // for so long
};
void print_why(Output& output, std::span<const Verdict* const> verdicts, const Snapshot& snapshot,
               const WhyContext& context);

} // namespace gpusnoop::cudatop
