/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Scheduler tracepoints and interrupts, which divide a thread's time into parts. */
#ifndef GPUSNOOP_SCHED_BPF_H
#define GPUSNOOP_SCHED_BPF_H

#include "kinds/blocks.bpf.h"
#include "kinds/wakers.bpf.h"

/* Handles threads that leave a CPU or get a CPU again. */

#define OUTERMOST_DISTANCE_MAX (64 << 10)

/* True if the thread's stack pointer is above the stack pointer at the entry of its outermost call. The thread has then
 * left this call without returning (longjmp, exception). Returns false if the distance is large, because the thread may
 * be in a signal handler with its own stack. */
INLINE bool has_left_call(struct task_struct* task, const struct thread_state* thread)
{
    u64 sp = PT_REGS_SP(regs_of(task)), outermost = 0;
    for (u32 i = 0; i < OPEN_CALLS; i++)
        if (sp_of(thread->open[i].sp_part) > outermost)
            outermost = sp_of(thread->open[i].sp_part);
    return sp > outermost && sp - outermost < OUTERMOST_DISTANCE_MAX;
}

OWN_FRAME int leave_cpu(void* ctx, struct task_struct* task, bool preempted)
{
    struct thread_state* thread = thread_state(task);
    struct thread_time* time = time_of_any(thread, task);
    if (!time)
        return 0;
    sync_on_cpu(task, thread, time);
    u64 call = time->now & TIME_CALL_BITS;
    if (call && thread && has_left_call(task, thread))
        call = 0;
    time->faults = task->maj_flt - time->faults_before;
    begin_queueing(task, time);
    u32 off = TIME_OTHER;
    /* A thread that is woken before it has left its CPU still counts as blocked, because its state is then TASK_WAKING.
     * The state becomes 0 only after the thread has left its CPU. */
    if (preempted || !task->__state) {
        time->preempted++;
        off = is_throttled(task) ? TIME_THROTTLED : TIME_RUNQ;
    } else {
        time->blocked++;
        if (is_stopped(task)) {
            off = TIME_STOPPED;
        } else if (!call) {
            off = block_reason(task, time);
            if (stacks_of_blocks && thread && thread->place)
                take_stacks(ctx, time);
        }
    }
    switch_part(time, TIME_OFF_BITS | TIME_CALL_BITS, call | off, 0, UP_TO_NOW);
    return 0;
}

OWN_FRAME int enter_cpu(struct task_struct* task)
{
    struct thread_state* thread = thread_state(task);
    struct thread_time* time = time_of_any(thread, task);
    if (time)
        back_on_cpu(task, thread, time, UP_TO_NOW);
    return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempt, struct task_struct* prev, struct task_struct* next)
{
    if (may_have_time(prev))
        leave_cpu(ctx, prev, preempt);
    if (may_have_time(next))
        enter_cpu(next);
    return 0;
}

/* Attached only if wakers are reported. */
SEC("tp_btf/sched_waking")
int BPF_PROG(waking, struct task_struct* task)
{
    if (may_have_time(task))
        on_wakeup(ctx, task);
    return 0;
}

/* Attached only if -e or the times per file are requested and the kernel has this tracepoint, because this program runs
 * at every page fault on the machine. */
SEC("tp_btf/page_fault_user")
int BPF_PROG(faulted, unsigned long address)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!may_have_time(task))
        return 0;
    struct thread_time* time = time_of_any(thread_state(task), task);
    if (time)
        time->fault = address;
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(exited, struct task_struct* task)
{
    if (may_have_time(task)) {
        end_time(task, task->pid);
        end_following(task->pid);
    }
    return 0;
}

/* `tid` is the thread's id before the exec. If a thread other than the main thread calls exec, it takes over the main
 * thread's id. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(executed, struct task_struct* task, int tid)
{
    end_time(task, tid);
    end_following(tid);
    end_following(task->pid);
    return 0;
}

/* Measures how long hardware interrupts and softirqs interrupt a thread on its CPU. Attached only on request, because
 * these programs run at every interrupt on the machine. */

OWN_FRAME int begin_interrupt(u32 part)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!may_have_time(task))
        return 0;
    struct thread_state* thread = thread_state(task);
    struct thread_time* time = time_of_any(thread, task);
    if (!time)
        return 0;
    sync_on_cpu(task, thread, time);
    u64 off = time->now & TIME_OFF_BITS;
    if (off == TIME_ENDED || off == TIME_HARDIRQ)
        return 0;
    if (part == TIME_HARDIRQ)
        time->interrupted = off;
    switch_part(time, TIME_OFF_BITS, part, 0, UP_TO_NOW);
    return 0;
}

/* Restores the thread's state from before the interrupt. After a hardware interrupt, the state may be that of a
 * softirq. After a softirq, the thread always runs again, because a softirq cannot interrupt a hardware interrupt. */
OWN_FRAME int end_interrupt(u32 part)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!may_have_time(task))
        return 0;
    struct thread_time* time = time_of_any(thread_state(task), task);
    if (time && (time->now & TIME_OFF_BITS) == part)
        switch_part(time, TIME_OFF_BITS, part == TIME_HARDIRQ ? time->interrupted & TIME_OFF_BITS : TIME_CPU, 0,
                    UP_TO_NOW);
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

/* irq_handler reports interrupts from devices. On x86, the other hardware interrupts have their own vectors, which do
 * not pass through irq_handler. So each of them needs its own tracepoint. */
/* clang-format off */
INTERRUPT(irq_handler, TIME_HARDIRQ)
INTERRUPT(local_timer, TIME_HARDIRQ)
INTERRUPT(reschedule, TIME_HARDIRQ)
INTERRUPT(call_function, TIME_HARDIRQ)
INTERRUPT(call_function_single, TIME_HARDIRQ)
INTERRUPT(irq_work, TIME_HARDIRQ)
INTERRUPT(softirq, TIME_SOFTIRQ)
/* clang-format on */

#endif
