// SPDX-License-Identifier: Apache-2.0
// Watch for executable file mappings, forks, execs and exits on the whole host. A dummy perf event per CPU records them
// (mmap2 records), so nothing is polled, and a dlopen is reported within a millisecond.
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

// Reports CPUs that come online, from the kernel's uevents (lib/kobject_uevent.c).
class CpuHotplug {
public:
    CpuHotplug(); // if the kernel refuses the socket, sets errno, descriptor() is -1, and nothing is reported

    int descriptor() const { return socket_.get(); } // readable if there are uevents

    struct Online {
        std::vector<int> cpus;
        bool lost = false; // the socket overflowed, so any CPU may have come online
    };
    Online drain();

    // uevent: a string such as "online@/devices/system/cpu/cpu3", followed by KEY=VALUE strings. Returns the CPU, or
    // nullopt for other uevents.
    static std::optional<int> parse(std::string_view uevent);

private:
    Fd socket_;
};

class MappingWatch {
public:
    struct Handlers {
        // A file was mapped executable. path: as the process sees it; device (makedev) and inode: as /proc shows them.
        std::function<void(pid_t, std::string_view path, uint64_t device, uint64_t inode)> mapped;
        std::function<void(pid_t pid, pid_t parent)> forked; // not called for threads
        std::function<void(pid_t pid, pid_t tid)> exited;    // called for each thread
        // The process called exec at this time (CLOCK_MONOTONIC).
        std::function<void(pid_t, uint64_t time_ns)> on_exec;
        // A thread of the process has a new name, set by exec (is_exec) or by prctl.
        std::function<void(pid_t, std::string_view name, bool is_exec)> named = {};
        std::function<void()> lost; // records were lost, so everything must be scanned again
    };

    explicit MappingWatch(Handlers handlers); // throws Error
    ~MappingWatch();
    MappingWatch(const MappingWatch&) = delete;
    MappingWatch& operator=(const MappingWatch&) = delete;

    int descriptor() const { return epoll_.get(); } // readable if there are records
    void drain();                                   // calls the handlers for all waiting records

    // Calls the handler of one perf record. Ignores truncated records.
    static void dispatch(std::span<const uint8_t> record, const Handlers& to);

private:
    // Owns a perf event and the mapping of its buffer.
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
    void add_to_epoll(int descriptor);
    void drain(Ring& ring);

    Handlers handlers_;
    Fd epoll_; // waits for hotplug_ and all rings
    CpuHotplug hotplug_;
    std::map<int, Ring> rings_; // one per CPU
    std::vector<uint8_t> scratch_;
};

// Derives exits of processes from exits of threads. A process has exited when its last thread has exited. The last
// thread need not be the main thread (pthread_exit).
class ProcessExits {
public:
    enum class Exit : uint8_t {
        thread,
        main_thread, // the main thread exited, and other threads still run
        replaced,    // another thread called exec() and now has the id of the main thread, which exited
        process,
    };

    // Classifies an exit record (PERF_RECORD_EXIT). Records of different CPUs may arrive out of order.
    Exit thread_exited(pid_t pid, pid_t tid);

    // Call it after an exec. Returns true if the main thread had exited before, so that the thread that called exec
    // replaced it.
    bool executed(pid_t pid);

    // Returns the processes that have exited without a result of thread_exited(): their main thread exited before other
    // threads, and the exit record of their last thread was lost.
    std::set<pid_t> drain_unreported();

private:
    std::map<pid_t, pid_t> last_running_; // one running thread of each process whose main thread has exited
};

} // namespace gpusnoop
