// SPDX-License-Identifier: Apache-2.0
// Which calls of CUDA and NCCL the threads of a process are in, as long as somebody looks: by their stacks, which a
// helper follows (code/pending_calls.hpp).
#pragma once

#include "attach/probes.hpp"
#include "names/copied_stacks.hpp"
#include "proc/threads.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

class ThreadPlaces {
public:
    // probes: as calls are numbered by; looked for are those of NCCL, and waits for the device.
    explicit ThreadPlaces(std::span<const Probe> probes);

    // To be called once a second with all that are asked about: others are forgotten. What it finds is known the next
    // time.
    void look(const std::set<pid_t>& processes, uint64_t now_ns);

    struct Place {
        const Probe* probe = nullptr;
        uint64_t since_ns = 0; // when it was first seen there, of the looks since that found the same call
        unsigned seen = 0;     // by so many looks
        std::vector<uint64_t> callers{};

        bool is_wait() const { return probe->library != Library::nccl; }
    };
    // Of the threads that are in a call, by their ids.
    const std::map<uint32_t, Place>& of(pid_t pid) const;
    // It is known which those are, and that the others are in none.
    bool is_known(pid_t pid) const;

private:
    struct Thread {
        PendingCall call;
        uint64_t since_ns = 0;
        unsigned seen = 0;
    };
    struct Process {
        std::map<uint32_t, Thread> threads;
        std::map<uint32_t, Place> places;
        bool answered = false;
    };

    void take(pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls);

    std::span<const Probe> probes_;
    std::map<pid_t, Process> processes_;
    uint64_t looked_ns_ = 0;
    ThreadRegisters registers_;
    PendingCallHelper reader_;
};

} // namespace gpusnoop
