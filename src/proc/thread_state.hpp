// SPDX-License-Identifier: Apache-2.0
// The state of a thread, and the process that traces it.
#pragma once

#include <string_view>
#include <sys/types.h>

namespace gpusnoop {

struct ThreadState {
    char state = 0;   // 'R', 'S', 'D', 'T' (stopped by a signal), 't' (stopped by its tracer), ...; 0: it has ended
    pid_t tracer = 0; // 0: none
};

ThreadState thread_state(pid_t pid, pid_t tid);

// Of the text of its status file.
ThreadState parse_thread_state(std::string_view status);

} // namespace gpusnoop
