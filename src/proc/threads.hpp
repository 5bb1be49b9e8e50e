// SPDX-License-Identifier: Apache-2.0
// Search for a running thread of a process, to inspect the process through the /proc files of that thread. If the main
// thread has exited (pthread_exit) and other threads run, /proc/PID no longer shows memory, files, root and namespaces
// (exit_mm() and others in kernel/exit.c), but /proc/TID of another thread does.
#pragma once

#include "bpf/shared/stack.h"

#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// Returns a running thread, preferably the main thread, or nullopt if all threads have exited.
std::optional<pid_t> running_thread(pid_t pid);

// Returns a running thread if the main thread has exited, else nullopt. Use it to retry after reading /proc/PID failed.
std::optional<pid_t> other_running_thread(pid_t pid);

// The state of a thread, and the process that debugs it with ptrace.
struct ThreadState {
    char state = 0;   // 'R', 'S', 'D', 'T' (stopped by a signal), 't' (stopped by its tracer), ...; 0 if exited
    pid_t tracer = 0; // 0 if none
};

ThreadState thread_state(pid_t pid, pid_t tid);

// status: text of the thread's status file.
ThreadState parse_thread_state(std::string_view status);

} // namespace gpusnoop

struct threads_bpf;

namespace gpusnoop {

// Reads the registers of threads through a BPF iterator (Linux 5.8), without stopping the threads.
class ThreadRegisters {
public:
    ThreadRegisters(); // loads nothing yet
    ~ThreadRegisters();
    ThreadRegisters(const ThreadRegisters&) = delete;
    ThreadRegisters& operator=(const ThreadRegisters&) = delete;

    // Returns the registers of all threads of these processes. For a running thread, they are as of its last entry into
    // the kernel.
    std::vector<thread_registers> read(const std::set<pid_t>& processes);

private:
    struct Iterator;
    void begin();
    std::unique_ptr<Iterator> iterator_; // null if the kernel refuses the iterator
    bool started_ = false;
};

} // namespace gpusnoop
