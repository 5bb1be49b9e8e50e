// SPDX-License-Identifier: Apache-2.0
// Accounting of the entries that each process uses in BPF tables. The kernel side counts new entries
// (bpf/base/share.bpf.h), and class Shares subtracts entries that the front end deletes.
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
    // `object` must be loaded. Throws Error.
    explicit Shares(const bpf_object* object);

    // Subtracts the entries of exited processes from the totals. Must be called before these entries are deleted.
    void release(std::span<const image> exited);

    // Sets the number of used rows in the table of calls.
    void set_rows(size_t taken);
    // Begins a new generation of rows. Rows of earlier generations no longer count toward any process's share.
    void begin_new_rows();

private:
    int shares_fd_;
    int held_fd_; // descriptor of the map held_bytes; negative if the object has no such map
    SharedArray<shared_taken> taken_;
};

} // namespace gpusnoop
