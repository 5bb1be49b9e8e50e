/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Interrupts of known duration in one thread (main.cpp): softirqs when the thread receives a packet from itself, and
 * hardirqs when a timer of the thread's CPU time fires. */
#include "shared/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PASS 2 /* XDP_PASS */

const volatile __u32 thread = 0; /* id of the thread; interrupts of other threads are not counted */
const volatile __u64 each_ns = 0;
__u64 soft_ns, hard_ns, soft_count, hard_count;

static long is_over(u64 iteration, const u64* until)
{
    return bpf_ktime_get_ns() >= *until;
}

static __attribute__((noinline)) u64 spin(void)
{
    u64 since = bpf_ktime_get_ns(), until = since + each_ns;
    bpf_loop(1 << 20, is_over, &until, 0);
    return bpf_ktime_get_ns() - since;
}

static __attribute__((always_inline)) bool in_target_thread(void)
{
    struct task_struct* task = (void*)bpf_get_current_task();
    return (u32)BPF_CORE_READ(task, pid) == thread;
}

SEC("xdp")
int receive(struct xdp_md* ctx)
{
    if (in_target_thread()) {
        u64 hard_before = hard_ns, took = spin();
        soft_ns += took - (hard_ns - hard_before);
        soft_count++;
    }
    return PASS;
}

SEC("perf_event")
int time_passes(void* ctx)
{
    if (in_target_thread()) {
        hard_ns += spin();
        hard_count++;
    }
    return 0;
}
