// SPDX-License-Identifier: Apache-2.0
// Programs in a kernel that is locked down in confidentiality mode: they may read the memory of processes, and not that
// of the kernel by a function. libbpf (1.3 to 1.7) asks for the latter, takes the answer for both, and has all of them
// call functions of before 5.5 instead, which that mode forbids, too.
#pragma once

#include <linux/bpf.h>
#include <span>

namespace gpusnoop {

// By trying: what says so is in securityfs, which a container need not have.
bool kernel_is_confidential();

// What libbpf has replaced: in that mode, a program has no other reads (bpf/base/machine.bpf.h).
void put_user_reads_back(std::span<bpf_insn> code);

} // namespace gpusnoop
