// SPDX-License-Identifier: Apache-2.0
// Cases that load programs are skipped where none can be, and say why.
#pragma once

#include "attach/refusal.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

inline void need_bpf()
{
    if (geteuid() != 0)
        SKIP("only root may load programs");
    if (syscall(SYS_bpf, 0, nullptr, 0) < 0 && errno == ENOSYS)
        SKIP("there is no BPF here (qemu-user has none)");
    gpusnoop::quiet_libbpf();
}
