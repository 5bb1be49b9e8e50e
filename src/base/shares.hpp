// SPDX-License-Identifier: Apache-2.0
// Processes' shares of the kernel side's tables (bpf/base/share.bpf.h): the part of the accounting that belongs to the
// front end, which deletes rows and what exited processes have left.
#pragma once

#include "base/bpf_map.hpp"
#include "bpf/shared/process.h"
#include "bpf/shared/share.h"

#include <cstddef>
#include <span>

struct bpf_object;

namespace gpusnoop {

class Shares {
public:
    // Of an object that is loaded. Throws Error.
    explicit Shares(const bpf_object* object);

    // Their entries are about to be deleted.
    void release(std::span<const image> exited);

    // So many rows of calls are in the table now.
    void set_rows(size_t taken);
    // From now on, calls make new rows: the old ones count for no process.
    void begin_new_rows();

private:
    int shares_fd_;
    int held_fd_; // negative: nothing that is held is tracked
    SharedArray<shared_taken> taken_;
};

} // namespace gpusnoop
