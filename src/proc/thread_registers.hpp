// SPDX-License-Identifier: Apache-2.0
// The registers of threads, as the kernel has them: through a BPF iterator (5.8). Nothing is stopped for it.
#pragma once

#include "bpf/shared/thread_registers.h"

#include <memory>
#include <set>
#include <sys/types.h>
#include <vector>

struct threads_bpf;

namespace gpusnoop {

class ThreadRegisters {
public:
    ThreadRegisters(); // asks for nothing yet
    ~ThreadRegisters();
    ThreadRegisters(const ThreadRegisters&) = delete;
    ThreadRegisters& operator=(const ThreadRegisters&) = delete;

    // Of all threads of these processes; of a thread that runs, as of when it was interrupted last.
    std::vector<thread_registers> of(const std::set<pid_t>& processes);

private:
    struct Iterator;
    void begin();
    std::unique_ptr<Iterator> iterator_; // null where the kernel refuses to tell them
    bool begun_ = false;
};

} // namespace gpusnoop
