// SPDX-License-Identifier: Apache-2.0
// Gate that holds a started program and its descendants in mmap() of an executable file until the file has its probes.
// A seccomp filter with a listener (SECCOMP_RET_USER_NOTIF, 5.0) stops the calls, and a separate process, the
// gatekeeper, answers them. The gatekeeper lives as long as the filter, even if the tool is killed: without a listener
// mmap() would fail with ENOSYS.
#pragma once

#include "base/fd.hpp"
#include "reader/helper.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpusnoop {

class MappingGate {
public:
    struct Policy {
        std::function<bool(std::string_view path)> holds{}; // the file may need probes; called in the gatekeeper
        bool holds_exec = false; // also hold a new program before its first instruction: it may need probes itself
    };
    // Forks the gatekeeper. It inherits this process's mappings, so create the gate before any BPF map.
    explicit MappingGate(const Policy& policy);
    // The gatekeeper ends, unless processes with the filter are left: then it stays to answer them.
    ~MappingGate();
    MappingGate(const MappingGate&) = delete;
    MappingGate& operator=(const MappingGate&) = delete;

    // Call in the child before its exec: installs the filter for good. If the kernel refuses (no CAP_SYS_ADMIN, or
    // another listener exists), next() reports it and nothing is held. False: the program cannot start, because the
    // gatekeeper has just ended.
    bool enter();
    // Call in the parent after the fork: closes the child's end.
    void forked() { for_child_ = Fd(); }

    enum class What : uint8_t {
        mapping, // a process waits to map a file; Event::file is open (O_PATH)
        exec,    // a process waits at the start of a new program
        expired, // a process waited too long to map this file, and was released
        refused, // the kernel refused the filter: no process will wait
        ended,   // the gatekeeper ended: no process with the filter is left
    };
    struct Event {
        What what = What::mapping;
        uint64_t id = 0;  // for release()
        pid_t tid = 0;    // the waiting thread
        std::string path; // as /proc shows it, " (deleted)" included
        int error = 0;    // errno of the refusal
        Fd file;
    };
    // The next event; nullopt: none is pending. Never waits.
    std::optional<Event> next() { return next_within({}); }
    int descriptor() const { return to_gatekeeper_.descriptor(); } // readable when an event is pending
    bool closed() const { return to_gatekeeper_.closed(); }        // no more events will arrive

    void release(uint64_t id); // lets the process continue; ignored if it has exited or was released
    void open();               // permanently: releases all waiting processes and holds no more

private:
    std::optional<Event> next_within(std::chrono::milliseconds longest);

    Fd for_child_;
    Connection to_gatekeeper_{Fd()};
    pid_t gatekeeper_ = -1;
    bool holds_exec_;
    bool ended_ = false;
};

} // namespace gpusnoop
