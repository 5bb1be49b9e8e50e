// SPDX-License-Identifier: Apache-2.0
// Skips test cases that load BPF programs if this machine cannot load any.
#pragma once

#include "attach/refusal.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

inline void need_bpf()
{
    if (geteuid() != 0)
        SKIP("only root may load BPF programs");
    if (syscall(SYS_bpf, 0, nullptr, 0) < 0 && errno == ENOSYS)
        SKIP("no bpf() system call here (qemu-user does not emulate it)");
    gpusnoop::quiet_libbpf();
}
