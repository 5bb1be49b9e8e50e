// SPDX-License-Identifier: Apache-2.0
// Estimates the number of calls of a process that is traced only in sampling windows: multiplies the counts from the
// windows by the ratio of the process's total CPU time to its CPU time within windows.
#pragma once

#include "rows/calls.hpp"
#include "who/processes.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace gpusnoop {

class CallSample {
public:
    // In all functions, work_ns is the CPU time that the process has used so far, without the time spent in probes.
    // Wall time would bias the estimate, because windows tend to begin and end while the process runs, not while it
    // waits for a CPU. Sampling starts at the work_ns passed to the constructor. CUDA calls before that time are not
    // included.
    explicit CallSample(uint64_t work_ns) : since_ns_(work_ns) {}

    void open(uint64_t work_ns) { opened_ns_ = work_ns; }
    // probes_ns: time spent in probes during the window.
    void close(uint64_t work_ns, uint64_t probes_ns);
    bool is_open() const { return opened_ns_.has_value(); }

    void add(const CallDelta& delta); // delta: calls counted in a window

    // Returns the estimated calls since the last drain(), computed from the windows closed since then. If no window was
    // closed, returns none, and the next drain() covers that time too.
    std::vector<CallDelta> drain(uint64_t work_ns);
    // Call instead of drain() after the last window. If the process used no CPU time in the windows, returns the
    // counted calls unscaled.
    std::vector<CallDelta> drain_last(uint64_t work_ns);
    // Accuracy of the estimates that the last drain() returned.
    const Sampled& accuracy() const { return accuracy_; }

private:
    struct Window {
        uint64_t work_ns = 0;
        uint64_t calls = 0;
    };
    std::vector<CallDelta> drain_scaled(double factor);
    std::optional<double> error() const;

    uint64_t since_ns_;
    std::optional<uint64_t> opened_ns_;
    Window current_;
    std::deque<Window> windows_; // the most recent windows, from which the error is estimated
    // Since the last drain():
    size_t windows_since_drain_ = 0;
    uint64_t traced_ns_ = 0, probes_ns_ = 0;
    ByCallKey<CallDelta> counted_;
    Sampled accuracy_;
};

} // namespace gpusnoop
