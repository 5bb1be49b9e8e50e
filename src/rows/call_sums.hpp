// SPDX-License-Identifier: Apache-2.0
// Sums of each row since the last report. A report may cover weeks, and a process may make new rows with every call:
// beyond a limit, the rows of the process that has most of them lose detail, but nothing of their sums.
#pragma once

#include "rows/calls.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace gpusnoop {

class CallSums {
public:
    static constexpr size_t usual_limit = 65'536; // some 25 MB
    // To print a row takes some 20 us, and the next report is not to wait for that.
    static constexpr size_t rows_per_second = 8192;
    static size_t
    limit_for(std::optional<std::chrono::nanoseconds> interval); // between reports; nullopt: one, at the end

    // limit: of rows with all detail. As many rows without it are kept beside them.
    explicit CallSums(size_t limit = usual_limit) : limit_(limit) {}

    void add(const CallDelta& delta);
    // Of these processes nothing is told apart any more.
    void merge(const std::set<ImageId>& images);
    std::span<const CallDelta> rows() const { return rows_; }
    // Calls, or copies, that are in rows of less detail than asked for: without subject (kernel, graph, event,
    // command), thread, stream, stack and cgroup. Beyond the limit of those, they are in a row of pid 0.
    uint64_t merged() const { return merged_; }
    void clear();

private:
    CallDelta& row(const call_key& key, bool has_detail);
    bool make_room_for(const ImageId& image);
    void add_coarse(const CallDelta& delta);
    template<class F>
    void rebuild(F&& again);

    size_t limit_;
    uint64_t merged_ = 0;
    std::vector<CallDelta> rows_;
    ByCallKey<size_t> places_;
    std::vector<bool> has_detail_;      // of each row: whether it has all of it
    size_t detailed_ = 0;               // how many have
    std::map<ImageId, size_t> rows_of_; // the same, of each process
    std::set<ImageId> coarse_;          // processes that get no more of these
};

} // namespace gpusnoop
