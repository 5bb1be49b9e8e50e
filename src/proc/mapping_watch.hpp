// SPDX-License-Identifier: Apache-2.0
// Tells of every executable file mapping made anywhere on the host, and of threads that exit, as it happens and
// without polling: a dummy perf event per CPU with mmap2 records (a dlopen is seen in the same millisecond).
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// CPUs that come online, from the kernel's uevents (lib/kobject_uevent.c).
class CpuHotplug {
public:
    CpuHotplug(); // sees nothing, and descriptor() is -1 with errno, if the kernel refuses the socket

    int descriptor() const { return socket_.get(); } // readable when uevents wait

    struct Online {
        std::vector<int> cpus;
        bool lost = false; // the socket overflowed, so any CPU may have come online
    };
    Online drain();

    // The CPU that one uevent reports online, as in "online@/devices/system/cpu/cpu3", then KEY=VALUE strings.
    static std::optional<int> parse(std::string_view uevent);

private:
    Fd socket_;
};

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
    static void dispatch(std::span<const uint8_t> record, const Handlers& to);

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

// Exits of processes, from the exits of their threads: a process has exited when its last thread has, which need not be
// the main thread (pthread_exit).
class ProcessExits {
public:
    enum class Exit : uint8_t {
        thread,
        main_thread, // others run
        replaced,    // the main thread, by another one that called exec() and has its number now
        process,
    };

    // A thread has exited, as the kernel reports it (PERF_RECORD_EXIT): which exit that is of.
    // Records may come in another order than the exits of threads that ran on several CPUs.
    Exit thread_exited(pid_t pid, pid_t tid);

    // The process has executed a program. True if its main thread had exited, whose place the calling thread has taken.
    bool executed(pid_t pid);

    // Processes without a main thread whose exit was not reported.
    std::set<pid_t> drain_unreported();

private:
    std::map<pid_t, pid_t> last_running_; // a running thread of each process without a main thread
};

} // namespace gpusnoop
