// SPDX-License-Identifier: Apache-2.0
// Exits of processes, from the exits of their threads: a process has exited when its last thread has, which need not be
// the main thread (pthread_exit).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <sys/types.h>

namespace gpusnoop {

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
    std::set<pid_t> missed();

private:
    std::map<pid_t, pid_t> last_running_; // a running thread of each process without a main thread
};

} // namespace gpusnoop
