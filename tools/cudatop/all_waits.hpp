// SPDX-License-Identifier: Apache-2.0
// Every wait of an interval: those that return, those that go on, those from before tracing, and where they are.
#pragma once

#include "base/clock.hpp"
#include "tools/cudasync/earlier_waits.hpp"
#include "tools/cudasync/wait_stacks.hpp"
#include "tools/cudasync/waits.hpp"
#include "tools/cudatop/columns.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

namespace gpusnoop::cudatop {

class AllWaits {
public:
    AllWaits(int waiting_fd, int free_places_fd, Waiting::Shared shared) : waiting_(waiting_fd, free_places_fd, shared)
    {}

    // Only what is seen from its entry on is known without it.
    void look_into_threads(std::span<const Probe> probes, const Settings& settings, const Options& options,
                           FoundStacks& stacks)
    {
        earlier_.emplace(probes, settings.driver, settings.runtime, options, registers_.emplace(), stacks);
        stacks_.emplace(probes, *registers_, stacks);
    }

    ThreadRegisters& registers() { return *registers_; } // after look_into_threads()

    void look(const std::vector<pid_t>& users)
    {
        if (earlier_)
            earlier_->look(users, waiting_);
    }

    void executed(pid_t pid, uint64_t time_ns)
    {
        waiting_.executed(static_cast<uint32_t>(pid), time_ns);
        left(pid);
    }

    void exited(pid_t pid)
    {
        waiting_.exited(static_cast<uint32_t>(pid), clock_ns(CLOCK_MONOTONIC));
        left(pid);
    }

    void forget_ended() { waiting_.forget_ended(); }

    // How long the interval is for waits.
    uint64_t end_interval(uint64_t interval_ns)
    {
        return waiting_.end_interval(clock_ns(CLOCK_MONOTONIC), interval_ns);
    }

    std::vector<Waiting::Part> of_interval(double seconds, Processes& processes)
    {
        std::vector<Waiting::Part> parts = waiting_.drain(0);
        if (earlier_)
            std::ranges::copy(earlier_->parts(clock_ns(CLOCK_MONOTONIC), seconds, processes),
                              std::back_inserter(parts));
        if (stacks_)
            stacks_->add_to(parts);
        return parts;
    }

private:
    void left(pid_t pid)
    {
        if (earlier_)
            earlier_->left(pid);
    }

    Waiting waiting_;
    std::optional<ThreadRegisters> registers_;
    std::optional<EarlierWaits> earlier_;
    std::optional<WaitStacks> stacks_;
};

} // namespace gpusnoop::cudatop
