// SPDX-License-Identifier: Apache-2.0
// Calls of a process whose probes are there in windows only. What is counted in them stands for the time between them,
// too: for as much as the process worked in it.
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
    // work_ns, here and below: CPU time of the process, less what its probes took. Wall time would not do: the windows
    // of one that waits for a CPU begin and end when it has one. Up to this one all calls are counted elsewhere.
    explicit CallSample(uint64_t work_ns) : since_ns_(work_ns) {}

    void open(uint64_t work_ns) { opened_ns_ = work_ns; }
    // probes_ns: what the probes took in the window.
    void close(uint64_t work_ns, uint64_t probes_ns);
    bool is_open() const { return opened_ns_.has_value(); }

    void add(const CallDelta& delta); // of a call within a window

    // What was done since the last time, as far as can be told from the windows that were closed. Empty where there was
    // none: the next one stands for that time, too.
    std::vector<CallDelta> drain(uint64_t work_ns);
    // The same, where none will follow: what a window has that stands for no time is there as it is.
    std::vector<CallDelta> drain_last(uint64_t work_ns);
    // Of what drain() gave last.
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
    std::deque<Window> windows_; // the last ones
    // Since the last time:
    size_t windows_since_drain_ = 0;
    uint64_t traced_ns_ = 0, probes_ns_ = 0;
    ByCallKey<CallDelta> counted_;
    Sampled accuracy_;
};

} // namespace gpusnoop
