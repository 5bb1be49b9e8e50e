// SPDX-License-Identifier: Apache-2.0
// Tells of every executable file mapping made anywhere on the host, and of threads that exit, as it happens and
// without polling: a dummy perf event per CPU with mmap2 records (a dlopen is seen in the same millisecond).
#pragma once

#include "base/fd.hpp"
#include "proc/cpu_hotplug.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

class MappingWatch {
public:
    struct Handlers {
        // A file was mapped executable: its path as the process sees it, device (makedev) and inode as /proc shows
        // them.
        std::function<void(pid_t, std::string_view path, uint64_t device, uint64_t inode)> mapped;
        std::function<void(pid_t pid, pid_t parent)> forked; // a process, not a thread
        std::function<void(pid_t pid, pid_t tid)> exited;    // a thread
        // A process is another program from this moment on, CLOCK_MONOTONIC.
        std::function<void(pid_t, uint64_t time_ns)> on_exec;
        // A thread of the process is called that now, because it is another program or has asked for it.
        std::function<void(pid_t, std::string_view name, bool is_exec)> named = {};
        std::function<void()> lost; // records were dropped: look again at everything
    };

    explicit MappingWatch(Handlers handlers); // throws Error
    ~MappingWatch();
    MappingWatch(const MappingWatch&) = delete;
    MappingWatch& operator=(const MappingWatch&) = delete;

    int descriptor() const { return waiting_.get(); } // readable when records wait
    void drain();                                     // hands all waiting records to the handlers

    // One record of the kernel's, with its header; what is no whole one is left out.
    static void hand_over(std::span<const uint8_t> record, const Handlers& to);

private:
    // Unmaps and closes itself.
    class Ring {
    public:
        explicit Ring(Fd event); // throws Error
        ~Ring();
        Ring(const Ring&) = delete;
        Ring& operator=(const Ring&) = delete;
        int descriptor() const { return event_.get(); }
        void* base() const { return base_; }

    private:
        Fd event_;
        void* base_;
    };

    void watch_cpu(int cpu);
    void watch_online_cpus();
    void wait_for(int descriptor);
    void drain(Ring& ring);

    Handlers handlers_;
    Fd waiting_; // epoll: hotplug_ and all rings
    CpuHotplug hotplug_;
    std::map<int, Ring> rings_; // by CPU
    std::vector<uint8_t> scratch_;
};

} // namespace gpusnoop
