// SPDX-License-Identifier: Apache-2.0
// Unfinished waits and their stacks. A wait is either traced by the kernel side, or began before tracing.
#pragma once

#include "base/clock.hpp"
#include "rows/call_view.hpp"
#include "tools/cudasync/earlier_waits.hpp"
#include "tools/cudasync/wait_stacks.hpp"
#include "tools/cudasync/waits.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

namespace gpusnoop {

class AllWaits {
public:
    AllWaits(int waiting_fd, int free_places_fd, Waiting::Shared shared) : waiting_(waiting_fd, free_places_fd, shared)
    {}

    // Enables the search for waits that began before tracing. The options must outlive this object.
    void find_earlier(std::span<const Probe> probes, const CallSettings& settings, const Options& options,
                      UnwoundStacks& stacks)
    {
        earlier_.emplace(probes, settings.driver, settings.runtime, options, registers_.emplace(), stacks);
    }

    // Enables the search for stacks of long waits that have not returned. Call it after find_earlier().
    void find_stacks(std::span<const Probe> probes, UnwoundStacks& stacks)
    {
        stacks_.emplace(probes, *registers_, stacks);
    }

    ThreadRegisters& registers() { return *registers_; } // call find_earlier() first

    void scan_earlier(const std::vector<pid_t>& users)
    {
        if (earlier_)
            earlier_->scan(users, waiting_);
    }

    void executed(pid_t pid, uint64_t time_ns)
    {
        waiting_.executed(static_cast<uint32_t>(pid), time_ns);
        forget(pid);
    }

    void exited(pid_t pid)
    {
        waiting_.exited(static_cast<uint32_t>(pid), clock_ns(CLOCK_MONOTONIC));
        forget(pid);
    }

    void forget_ended() { waiting_.forget_ended(); }

    // Ends the current interval of waits. Returns its length, which may differ from that of the report's interval.
    uint64_t end_interval(uint64_t interval_ns)
    {
        return waiting_.end_interval(clock_ns(CLOCK_MONOTONIC), interval_ns);
    }

    // Returns, for each wait, the part that falls into the interval that has ended. Leaves out waits shorter than
    // least_ns, unless they began before tracing.
    std::vector<Waiting::Part> of_interval(double seconds, Processes& processes, uint64_t least_ns = 0)
    {
        std::vector<Waiting::Part> parts = waiting_.drain(least_ns);
        if (earlier_)
            std::ranges::copy(earlier_->parts(clock_ns(CLOCK_MONOTONIC), seconds, processes),
                              std::back_inserter(parts));
        if (stacks_)
            stacks_->add_to(parts);
        return parts;
    }

private:
    void forget(pid_t pid)
    {
        if (earlier_)
            earlier_->forget(pid);
    }

    Waiting waiting_;
    std::optional<ThreadRegisters> registers_;
    std::optional<EarlierWaits> earlier_;
    std::optional<WaitStacks> stacks_;
};

} // namespace gpusnoop
