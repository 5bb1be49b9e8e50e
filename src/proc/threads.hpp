// SPDX-License-Identifier: Apache-2.0
// A thread to read a process by. The kernel frees memory, files, root and namespaces per thread (exit_mm() and the like
// in kernel/exit.c): once the main thread has exited (pthread_exit) while others run, /proc/PID shows none of them, and
// /proc/TID of any other thread still does.
#pragma once

#include "bpf/shared/stack.h"

#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// A thread that has not exited: the main thread if possible. nullopt if all have.
std::optional<pid_t> running_thread(pid_t pid);

// The same where the main thread has exited and others run; else nullopt. For what could not be read through PID.
std::optional<pid_t> other_running_thread(pid_t pid);

// The state of a thread, and the process that traces it.
struct ThreadState {
    char state = 0;   // 'R', 'S', 'D', 'T' (stopped by a signal), 't' (stopped by its tracer), ...; 0: it has ended
    pid_t tracer = 0; // 0: none
};

ThreadState thread_state(pid_t pid, pid_t tid);

// Of the text of its status file.
ThreadState parse_thread_state(std::string_view status);

} // namespace gpusnoop

// The registers of threads, as the kernel has them: through a BPF iterator (5.8). Nothing is stopped for it.
struct threads_bpf;

namespace gpusnoop {

class ThreadRegisters {
public:
    ThreadRegisters(); // asks for nothing yet
    ~ThreadRegisters();
    ThreadRegisters(const ThreadRegisters&) = delete;
    ThreadRegisters& operator=(const ThreadRegisters&) = delete;

    // Of all threads of these processes; of a thread that runs, as of when it was interrupted last.
    std::vector<thread_registers> read(const std::set<pid_t>& processes);

private:
    struct Iterator;
    void begin();
    std::unique_ptr<Iterator> iterator_; // null where the kernel refuses to tell them
    bool started_ = false;
};

} // namespace gpusnoop
