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
    enum class Exit : uint8_t { thread, main_thread, process };

    // A thread has exited, as the kernel reports it (PERF_RECORD_EXIT): which exit that is of. main_thread: others run.
    // Records may come in another order than the exits of threads that ran on several CPUs.
    Exit thread_exited(pid_t pid, pid_t tid);

    // Processes without a main thread whose exit was not reported.
    std::set<pid_t> missed();

private:
    std::map<pid_t, pid_t> last_running_; // a running thread of each process without a main thread
};

} // namespace gpusnoop
