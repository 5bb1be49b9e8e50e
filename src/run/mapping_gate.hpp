// SPDX-License-Identifier: Apache-2.0
// Gate in front of the executable file mappings of a started program and its descendants: mmap() waits there until the
// file has its probes. A seccomp filter with a listener (SECCOMP_RET_USER_NOTIF, 5.0) stops the calls, and a process of
// its own, the gatekeeper, answers them. The gatekeeper lives as long as the filter does, also where the tool is
// killed: without a listener mmap() would fail with ENOSYS.
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
        bool holds_exec = false; // also a new program before its first instruction: it may need probes itself
    };
    // Starts the gatekeeper. It keeps this process' mappings of today, so the gate is made before BPF maps are.
    explicit MappingGate(const Policy& policy);
    // The gatekeeper ends, or stays with the processes that still have the filter.
    ~MappingGate();
    MappingGate(const MappingGate&) = delete;
    MappingGate& operator=(const MappingGate&) = delete;

    // In the child that is to be the program: installs the filter for good. Without CAP_SYS_ADMIN, or below another
    // listener, the kernel refuses, which next() reports, and nothing is held. False: the program cannot start, as the
    // gatekeeper has just ended.
    bool enter();
    // In its parent: the child has its copy of the descriptor.
    void forked() { for_child_ = Fd(); }

    enum class What : uint8_t {
        mapping, // the process waits to map a file, which comes with a descriptor (O_PATH)
        exec,    // the process waits at the start of a new program
        expired, // the process has waited too long to map this file, and goes on
        refused, // the kernel takes no filter: no process will wait
        ended,   // the gatekeeper has: no process is left that could wait
    };
    struct Event {
        What what = What::mapping;
        uint64_t id = 0;  // for release()
        pid_t tid = 0;    // the thread that waits
        std::string path; // as /proc shows it, " (deleted)" included
        int error = 0;    // why it is refused
        Fd file;
    };
    // What has happened since the last call; nullopt: nothing more. Never waits.
    std::optional<Event> next() { return next_within({}); }
    int descriptor() const { return to_gatekeeper_.descriptor(); } // readable where there is an event
    bool closed() const { return to_gatekeeper_.closed(); }        // there will be none

    void release(uint64_t id); // the process goes on; ignored where it has ended or its time has expired
    void open();               // for good: all that wait go on, and no process will wait

private:
    std::optional<Event> next_within(std::chrono::milliseconds longest);

    Fd for_child_;
    Connection to_gatekeeper_{Fd()};
    pid_t gatekeeper_ = -1;
    bool holds_exec_;
    bool ended_ = false;
};

} // namespace gpusnoop
