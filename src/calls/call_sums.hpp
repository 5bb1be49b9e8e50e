// SPDX-License-Identifier: Apache-2.0
// What has happened to each row since the last report. A report may cover weeks, in which a process has ever new rows:
// beyond a limit, what tells them apart finely is given up, and nothing of their sums.
#pragma once

#include "calls/calls.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace gpusnoop {

class CallSums {
public:
    static constexpr size_t usual_limit = 65'536; // some 25 MB

    // Twice as many rows are kept at most, and what one process makes without all detail.
    explicit CallSums(size_t limit = usual_limit) : limit_(limit) {}

    void add(const CallDelta& delta);
    // Of these processes nothing is told apart any more.
    void merge(const std::set<ImageId>& images);
    std::span<const CallDelta> rows() const { return rows_; }
    // How many calls, or copies, are in rows of less detail than asked for: those without subject (kernel, graph,
    // event, command), thread, stream, stack and cgroup. Of the limit's worth of those too many: all is in one row of
    // pid 0.
    uint64_t merged() const { return merged_; }
    void clear();

private:
    CallDelta& row(const call_key& key);

    size_t limit_;
    uint64_t merged_ = 0;
    std::vector<CallDelta> rows_;
    ByCallKey<size_t> places_;
};

} // namespace gpusnoop
