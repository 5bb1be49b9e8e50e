// SPDX-License-Identifier: Apache-2.0
// A thread to read a process by. The kernel frees memory, files, root and namespaces per thread (exit_mm() and the like
// in kernel/exit.c): once the main thread has exited (pthread_exit) while others run, /proc/PID shows none of them, and
// /proc/TID of any other thread still does.
#pragma once

#include <optional>
#include <sys/types.h>

namespace gpusnoop {

// A thread that has not exited: the main thread if possible. nullopt if all have.
std::optional<pid_t> running_thread(pid_t pid);

// The same where the main thread has exited and others run; else nullopt. For what could not be read through PID.
std::optional<pid_t> other_running_thread(pid_t pid);

} // namespace gpusnoop
