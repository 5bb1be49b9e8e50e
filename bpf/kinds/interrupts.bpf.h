/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Interrupts that come while a thread has a CPU, and what the kernel has left for behind them. Only where they are
 * asked for: each interrupt of the machine pays. */
#ifndef GPUSNOOP_INTERRUPTS_BPF_H
#define GPUSNOOP_INTERRUPTS_BPF_H

#include "kinds/wakers.bpf.h"

static __attribute__((noinline)) int begin_interrupt(u32 part)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!may_have_time(task))
        return 0;
    struct thread_state* thread = thread_state(task);
    struct thread_time* time = any_time_of(thread, task);
    if (!time)
        return 0;
    has_cpu(task, thread, time);
    u64 off = time->now & TIME_OFF_BITS;
    if (off == TIME_ENDED || off == TIME_HARDIRQ)
        return 0;
    if (part == TIME_HARDIRQ)
        time->interrupted = off;
    turn(time, TIME_OFF_BITS, part, 0, UP_TO_NOW);
    return 0;
}

/* A soft interrupt can be interrupted by a hard one, but not the other way round. */
static __attribute__((noinline)) int end_interrupt(u32 part)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!may_have_time(task))
        return 0;
    struct thread_time* time = any_time_of(thread_state(task), task);
    if (time && (time->now & TIME_OFF_BITS) == part)
        turn(time, TIME_OFF_BITS, part == TIME_HARDIRQ ? time->interrupted & TIME_OFF_BITS : TIME_CPU, 0, UP_TO_NOW);
    return 0;
}

#define INTERRUPT(tracepoint, part)                                                                                    \
    SEC("tp_btf/" #tracepoint "_entry")                                                                                \
    int interrupt_##tracepoint##_entry(void* ctx)                                                                      \
    {                                                                                                                  \
        return begin_interrupt(part);                                                                                  \
    }                                                                                                                  \
    SEC("tp_btf/" #tracepoint "_exit")                                                                                 \
    int interrupt_##tracepoint##_exit(void* ctx)                                                                       \
    {                                                                                                                  \
        return end_interrupt(part);                                                                                    \
    }

/* clang-format off */
INTERRUPT(irq_handler, TIME_HARDIRQ) /* of devices; what follows has vectors of its own on x86 */
INTERRUPT(local_timer, TIME_HARDIRQ)
INTERRUPT(reschedule, TIME_HARDIRQ)
INTERRUPT(call_function, TIME_HARDIRQ)
INTERRUPT(call_function_single, TIME_HARDIRQ)
INTERRUPT(irq_work, TIME_HARDIRQ)
INTERRUPT(softirq, TIME_SOFTIRQ)
/* clang-format on */

#endif
