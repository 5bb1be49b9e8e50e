// SPDX-License-Identifier: Apache-2.0
#include "reader/reader.hpp"

#include "reader/confinement.hpp"

#include <linux/capability.h>
#include <optional>
#include <sys/syscall.h>

namespace gpusnoop {
namespace {

constexpr int capabilities[] = {CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE, CAP_DAC_READ_SEARCH};
constexpr uint32_t calls[] = {SYS_openat,           SYS_openat2,           SYS_statx,           SYS_recvmsg,
                              SYS_sendmsg,          SYS_clock_gettime,     SYS_getpid,          SYS_getdents64,
                              SYS_process_vm_readv, SYS_inotify_add_watch, SYS_inotify_rm_watch};

} // namespace

void confine_reader(uint64_t memory_bytes)
{
    confine({.capabilities = capabilities,
             .calls = calls,
             .memory_bytes = memory_bytes,
             .cpu_seconds = std::nullopt,
             .output_bytes = 0});
}

} // namespace gpusnoop
