// SPDX-License-Identifier: Apache-2.0
// For what share of the time a process may have its probes, so that they cost it no more than a ceiling.
#pragma once

namespace gpusnoop {

class DutyCycle {
public:
    // ceiling: what the probes may cost, as a part of what the process would use without them.
    explicit DutyCycle(double ceiling) : ceiling_(ceiling) {}

    // Of the time that follows; 1: always.
    double share() const { return share_; }
    bool is_whole() const { return share_ >= 1; }

    // What has been measured since the last time, as parts of the CPU time that the process used: what those probes
    // took that come and go, and those that stay. Probes were there for so much of the time.
    void add(double sampled, double others, double share_of_time);

private:
    double ceiling_;
    double share_ = 1;
};

} // namespace gpusnoop
