/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What wakes a blocked thread: another thread, its own timeout, a signal, or an interrupt. */
#ifndef GPUSNOOP_WAKE_CAUSE_BPF_H
#define GPUSNOOP_WAKE_CAUSE_BPF_H

#include "base/process.bpf.h"
#include "kinds/block_reason.bpf.h"
#include "shared/gap.h"

enum timer_kind {
    TIMER_HIGH_RESOLUTION,
    TIMER_WHEEL, /* in softirq: one of the others may interrupt it */
    TIMER_KINDS,
};

/* The timers whose functions run on this CPU; 0: none. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, TIMER_KINDS);
    __type(key, u32);
    __type(value, u64);
} expiring_timers SEC(".maps");

INLINE int begin_expiry(u32 kind, u64 timer)
{
    u64* expiring = bpf_map_lookup_elem(&expiring_timers, &kind);
    if (expiring)
        *expiring = timer;
    return 0;
}

INLINE u64 expiring_timer(u32 kind)
{
    const u64* expiring = bpf_map_lookup_elem(&expiring_timers, &kind);
    return expiring ? *expiring : 0;
}

/* Only where wakers are reported: all timers of the machine pay. */
SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(hrtimer_begins, void* timer)
{
    return begin_expiry(TIMER_HIGH_RESOLUTION, (u64)timer);
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(hrtimer_ends)
{
    return begin_expiry(TIMER_HIGH_RESOLUTION, 0);
}

SEC("tp_btf/timer_expire_entry")
int BPF_PROG(timer_begins, void* timer)
{
    return begin_expiry(TIMER_WHEEL, (u64)timer);
}

SEC("tp_btf/timer_expire_exit")
int BPF_PROG(timer_ends)
{
    return begin_expiry(TIMER_WHEEL, 0);
}

INLINE bool is_on_stack_of(struct task_struct* task, u64 address)
{
    const struct task_struct___woken* woken = (void*)task;
    return address >= (u64)woken->stack && address < (u64)regs_of(task);
}

/* A system call that waits with a timeout has the timer on its stack (hrtimer_sleeper, process_timer). */
INLINE bool has_timed_out(struct task_struct* task)
{
    return is_on_stack_of(task, expiring_timer(TIMER_HIGH_RESOLUTION)) ||
           is_on_stack_of(task, expiring_timer(TIMER_WHEEL));
}

#define PF_EXITING 0x4
#define PF_KTHREAD 0x200000

/* "ksoftirqd/0"; "ktimers/0" runs timers with PREEMPT_RT. */
INLINE bool runs_softirqs(struct task_struct* task)
{
    static const char softirqs[8] = "ksoftirq", timers[8] = "ktimers/";
    u64 name[2];
    read_comm(task, name);
    return task->flags & PF_KTHREAD && (name[0] == *(const u64*)softirqs || name[0] == *(const u64*)timers);
}

/* In place of the current thread, whose system call or user code it interrupts. Interrupts of the kernel run on a stack
 * of their CPU, and so does the program then: its context is on that stack. */
INLINE bool is_interrupt(void* ctx, struct task_struct* task)
{
    if (!task->pid || !is_on_stack_of(task, (u64)ctx) || runs_softirqs(task))
        return true;
    return (s64)SYSTEM_CALL_NUMBER(regs_of(task)) < 0 && !(task->flags & PF_EXITING);
}

#define IFF_LOOPBACK 0x8

INLINE unsigned int flags_of_device(struct dst_entry* to)
{
    struct dst_entry___6_18* later = (void*)to;
    if (bpf_core_field_exists(later->dev_rcu))
        return READ(later, dev_rcu, flags);
    return READ(to, dev, flags);
}

/* A softirq delivers these packets before the system call returns that sends them. */
INLINE bool sends_over_loopback(struct task_struct* task)
{
    struct pt_regs* regs = regs_of(task);
    u64 number = SYSTEM_CALL_NUMBER(regs);
    if (task->flags & PF_EXITING || number == __NR_close)
        return true; /* has no descriptor any more */
    if (number >= sizeof(reasons) || (reasons[number] != TIME_SOCKET && reasons[number] != BY_DESCRIPTOR))
        return false;
    struct file* file = file_of_descriptor(task, SYSTEM_CALL_FIRST(regs));
    if (!file || (READ(file, f_inode, i_mode) & MODE_TYPE) != MODE_SOCKET)
        return false;
    struct socket* socket = READ((struct file___socket*)file, private_data);
    return flags_of_device(READ(socket, sk, sk_dst_cache)) & IFF_LOOPBACK;
}

INLINE bool has_signal(struct task_struct* task)
{
    struct task_struct___woken* woken = (void*)task;
    u64 pending = READ(woken, pending.signal.sig[0]) | READ(woken, signal, shared_pending.signal.sig[0]);
    return pending & ~READ(woken, blocked.sig[0]);
}

/* What devices end counts as a wait for them, whatever wakes the thread. */
#define WOKEN_BY_THREADS                                                                                               \
    (1 << TIME_LOCK | 1 << TIME_POLL | 1 << TIME_PIPE | 1 << TIME_SOCKET | 1 << TIME_CHILD | 1 << TIME_OTHER)

static __attribute__((noinline)) u32 wake_cause(void* ctx, struct task_struct* blocked_one, u32 part)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (has_timed_out(blocked_one))
        return WOKEN_BY_TIMEOUT;
    bool by_network = part == TIME_SOCKET || part == TIME_POLL;
    if (!is_interrupt(ctx, task) || (by_network && task->pid && sends_over_loopback(task)))
        return 1 << part & WOKEN_BY_THREADS ? WOKEN_BY_THREAD : WOKEN_BY_UNKNOWN;
    return has_signal(blocked_one) ? WOKEN_BY_SIGNAL : WOKEN_BY_INTERRUPT;
}

#endif
