// SPDX-License-Identifier: Apache-2.0
// Estimates call counts from sampling windows: scales what was counted in the windows by the CPU time that the process
// used in and between them.
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
    // work_ns, here and below: CPU time of the process without its probes. Wall time would bias the estimate: a process
    // that waits for a CPU has one whenever a window begins and ends. Calls up to this work_ns are counted elsewhere.
    explicit CallSample(uint64_t work_ns) : since_ns_(work_ns) {}

    void open(uint64_t work_ns) { opened_ns_ = work_ns; }
    // probes_ns: time that the probes took in the window.
    void close(uint64_t work_ns, uint64_t probes_ns);
    bool is_open() const { return opened_ns_.has_value(); }

    void add(const CallDelta& delta); // calls within a window

    // Estimates for the time since the last drain(), from the windows closed since then. Empty if there was none; the
    // next window then covers that time as well.
    std::vector<CallDelta> drain(uint64_t work_ns);
    // As drain(), when no window will follow: calls of windows without CPU time are returned unscaled.
    std::vector<CallDelta> drain_last(uint64_t work_ns);
    // Accuracy of the last drain().
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
    std::deque<Window> windows_; // the most recent ones
    // Since the last drain():
    size_t windows_since_drain_ = 0;
    uint64_t traced_ns_ = 0, probes_ns_ = 0;
    ByCallKey<CallDelta> counted_;
    Sampled accuracy_;
};

} // namespace gpusnoop
