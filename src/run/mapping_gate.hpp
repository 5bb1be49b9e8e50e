// SPDX-License-Identifier: Apache-2.0
// Gate that pauses a started program and its descendants in mmap() of an executable file until probes are attached to
// the file. A seccomp filter with a listener (SECCOMP_RET_USER_NOTIF, 5.0) blocks the mmap() calls, and a separate
// process, the gatekeeper, lets them continue. The gatekeeper runs as long as any process has the filter, even if the
// tool is killed, because mmap() would fail with ENOSYS without a listener.
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
        // true if the file may need probes; called in the gatekeeper
        std::function<bool(std::string_view path)> holds{};
        // also pause each new program before its own code runs, because the program file itself may need probes
        bool holds_exec = false;
    };
    // Forks the gatekeeper. Create the gate before any BPF map: the gatekeeper inherits this process's mappings, and a
    // mapped BPF map is not freed.
    explicit MappingGate(const Policy& policy);
    // Makes the gatekeeper release all waiting processes. The gatekeeper exits once no process with the filter is left.
    ~MappingGate();
    MappingGate(const MappingGate&) = delete;
    MappingGate& operator=(const MappingGate&) = delete;

    // Call in the child before its exec. Installs the filter, which cannot be removed. If the kernel refuses the filter
    // (no CAP_SYS_ADMIN, or another listener exists), next() reports that, and no process is paused. Returns false if
    // the program cannot start because the gatekeeper has exited.
    bool enter();
    // Call in the parent after the fork. Closes the child's end of the connection.
    void forked() { for_child_ = Fd(); }

    enum class What : uint8_t {
        mapping, // a process waits in mmap() of a file; Event::file is that file, opened with O_PATH
        exec,    // a process waits at the start of a new program
        expired, // a process waited too long in mmap() of this file, and was released
        refused, // the kernel refused the filter, so no process will wait
        ended,   // the gatekeeper exited, because no process with the filter is left
    };
    struct Event {
        What what = What::mapping;
        uint64_t id = 0;  // argument for release()
        pid_t tid = 0;    // the waiting thread
        std::string path; // as shown in /proc, including " (deleted)"
        int error = 0;    // for `refused`: the kernel's errno
        Fd file;
    };
    // The next event; nullopt if none is pending. Never waits.
    std::optional<Event> next() { return next_within({}); }
    int descriptor() const { return to_gatekeeper_.descriptor(); } // readable when an event is pending
    bool closed() const { return to_gatekeeper_.closed(); }        // no more events will arrive

    // lets the waiting process continue; does nothing if it has exited or was released before
    void release(uint64_t id);
    void open(); // releases all waiting processes, and pauses none from now on

private:
    std::optional<Event> next_within(std::chrono::milliseconds longest);

    Fd for_child_;
    Connection to_gatekeeper_{Fd()};
    pid_t gatekeeper_ = -1;
    bool holds_exec_;
    bool ended_ = false;
};

} // namespace gpusnoop
