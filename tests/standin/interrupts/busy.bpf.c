/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What takes a known time where a thread is interrupted: in a soft interrupt, where a packet is received that it has
 * sent to itself, and in a hard one, where a timer counts its time (main.cpp). */
#include "shared/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PASS 2 /* XDP_PASS */

const volatile __u32 thread = 0; /* its id; in that of others the time is none of its own */
const volatile __u64 each_ns = 0;
__u64 soft_ns, hard_ns, soft_count, hard_count;

static long is_over(u64 turn, const u64* until)
{
    return bpf_ktime_get_ns() >= *until;
}

static __attribute__((noinline)) u64 be_busy(void)
{
    u64 since = bpf_ktime_get_ns(), until = since + each_ns;
    bpf_loop(1 << 20, is_over, &until, 0);
    return bpf_ktime_get_ns() - since;
}

static __attribute__((always_inline)) bool is_the_threads(void)
{
    struct task_struct* task = (void*)bpf_get_current_task();
    return (u32)BPF_CORE_READ(task, pid) == thread;
}

SEC("xdp")
int receive(struct xdp_md* ctx)
{
    if (is_the_threads()) {
        u64 hard_before = hard_ns, took = be_busy();
        soft_ns += took - (hard_ns - hard_before);
        soft_count++;
    }
    return PASS;
}

SEC("perf_event")
int time_passes(void* ctx)
{
    if (is_the_threads()) {
        hard_ns += be_busy();
        hard_count++;
    }
    return 0;
}
