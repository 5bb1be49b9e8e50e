/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Threads that wake blocked threads. */
#ifndef GPUSNOOP_WAKERS_BPF_H
#define GPUSNOOP_WAKERS_BPF_H

#include "base/process.bpf.h"
#include "kinds/blocks.bpf.h"
#include "shared/gap.h"

/* Handles threads that get a CPU again. */

OWN_FRAME int back_on_cpu(struct task_struct* task, const struct thread_state* thread, struct thread_time* time,
                          u64 at_most)
{
    u32 part = time_part_of(time->now);
    bool counts = (count_blocks || count_files) && thread && is_blocked(part);
    u64 before = counts ? time->ns[part] : 0;
    switch_part(time, TIME_OFF_BITS, TIME_CPU, end_queueing(task, time), at_most);
    if (counts && count_blocks)
        count_block(thread, time, part, time->ns[part] - before);
    if (counts && count_files && (part == TIME_DISK || part == TIME_FAULT))
        count_file_wait(task, time, thread->place - 1, time->ns[part] - before);
    return 0;
}

/* Corrects the state of a thread that has a CPU although no switch to it was seen. Some kernels do not run our program
 * at every switch, and do not count the missing runs either (observed with Linux 6.18 in a Firecracker guest). The
 * thread's sched_info contains the time of the switch. */
INLINE void sync_on_cpu(struct task_struct* task, const struct thread_state* thread, struct thread_time* time)
{
    u32 off = time->now & TIME_OFF_BITS;
    if (off != TIME_CPU && off != TIME_ENDED && !is_interrupted(off))
        back_on_cpu(task, thread, time, off_cpu_ns(task, time));
}

INLINE void end_time(struct task_struct* task, u32 tid)
{
    struct thread_state* thread = thread_state(task);
    struct thread_time* time = time_of(thread);
    if (!time)
        return;
    sync_on_cpu(task, thread, time);
    thread->place = 0;
    for (u32 i = 0; i < OPEN_CALLS; i++)
        thread->open[i].sp_part = 0;
    mark_thread(tid, -1);
    time->faults = task->maj_flt - time->faults_before;
    read_comm(task, (u64*)time->comm);
    if (!follow_switches)
        read_cpu_use(task, &time->at_end);
    switch_part(time, TIME_OFF_BITS | TIME_CALL_BITS, TIME_ENDED, 0, UP_TO_NOW);
}

/* Causes of wake-ups: another thread, a timeout that the blocked thread has set, a signal, or an interrupt. */

enum timer_kind {
    TIMER_HIGH_RESOLUTION,
    TIMER_WHEEL, /* its functions run in a softirq, which a high-resolution timer may interrupt */
    TIMER_KINDS,
};

/* For each kind of timer, the address of the timer whose function is running on this CPU; 0: none. */
PERCPU_ARRAY_MAP(expiring_timers, TIMER_KINDS, u64);

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

/* The timer programs are attached only if wakers are reported, because they run at every timer on the machine. */
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

/* True if a thread is woken by the timeout of its own system call. The timer of such a timeout is on the thread's
 * kernel stack (hrtimer_sleeper, process_timer). */
INLINE bool has_timed_out(struct task_struct* task)
{
    return is_on_stack_of(task, expiring_timer(TIMER_HIGH_RESOLUTION)) ||
           is_on_stack_of(task, expiring_timer(TIMER_WHEEL));
}

#define PF_EXITING 0x4
#define PF_KTHREAD 0x200000

/* True for kernel threads that run softirqs: "ksoftirqd/N", and with PREEMPT_RT also "ktimers/N". */
INLINE bool runs_softirqs(struct task_struct* task)
{
    static const char softirqs[8] = "ksoftirq", timers[8] = "ktimers/";
    u64 name[2];
    read_comm(task, name);
    return task->flags & PF_KTHREAD && (name[0] == *(const u64*)softirqs || name[0] == *(const u64*)timers);
}

/* True if the wake-up is caused by an interrupt, not by the current thread's system call. Interrupts run on a per-CPU
 * stack. So in an interrupt, `ctx` is not on the thread's stack. */
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

/* True if the current system call sends over loopback. A softirq delivers such packets before the call returns, so the
 * sender is the waker. */
INLINE bool sends_over_loopback(struct task_struct* task)
{
    struct pt_regs* regs = regs_of(task);
    u64 number = SYSTEM_CALL_NUMBER(regs);
    if (task->flags & PF_EXITING || number == __NR_close)
        return true; /* the descriptor is already closed, so the socket cannot be checked */
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

/* Parts (enum time_part) in which another thread can be the waker of a blocked thread. In all other parts, the blocked
 * thread is assumed to wait for a device, even if another thread wakes it. */
#define WOKEN_BY_THREADS                                                                                               \
    (1 << TIME_LOCK | 1 << TIME_POLL | 1 << TIME_PIPE | 1 << TIME_SOCKET | 1 << TIME_CHILD | 1 << TIME_OTHER)

OWN_FRAME u32 wake_cause(void* ctx, struct task_struct* blocked_task, u32 part)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (has_timed_out(blocked_task))
        return WOKEN_BY_TIMEOUT;
    bool by_network = part == TIME_SOCKET || part == TIME_POLL;
    if (!is_interrupt(ctx, task) || (by_network && task->pid && sends_over_loopback(task)))
        return 1 << part & WOKEN_BY_THREADS ? WOKEN_BY_THREAD : WOKEN_BY_UNKNOWN;
    return has_signal(blocked_task) ? WOKEN_BY_SIGNAL : WOKEN_BY_INTERRUPT;
}

/* Tracks threads that wake CUDA threads, and how these wakers spend their time between wake-ups. A waker is tracked
 * from the first time that it wakes a CUDA thread. Threads that wake tracked wakers are also tracked, up to WAKERS
 * steps away from a CUDA thread. */

const volatile bool follow_wakers = false;

/* Current gap of each thread, by thread_state.place - 1. If gaps are not requested, or are measured per stream, the
 * front end reduces this map to 1 entry. */
ARRAY_MAP(gaps, PLACES_MAX, struct open_period);

/* If wakers are not requested, the front end reduces this map to 1 entry. */
PREALLOCATED_HASH_MAP(followed_threads, 1024, u32, struct waking_thread);

INLINE struct waking_thread* followed_of(u32 tid)
{
    return bpf_map_lookup_elem(&followed_threads, &tid);
}

INLINE struct open_period* gap_of(const struct thread_state* thread)
{
    u32 place = thread->place - 1;
    return bpf_map_lookup_elem(&gaps, &place);
}

/* Returns the thread_time of a CUDA thread or a tracked waker. */
INLINE struct thread_time* time_of_any(const struct thread_state* thread, struct task_struct* task)
{
    struct thread_time* time = time_of(thread);
    if (time || !follow_wakers)
        return time;
    struct waking_thread* followed = followed_of(task->pid);
    return followed ? &followed->time : 0;
}

/* Ends a period. Until now, period->ns holds the thread's totals at the start of the period. Replaces them by the time
 * spent in each part during the period. Returns the period's length in ns. */
OWN_FRAME u64 end_period(struct period* period, const struct thread_time* time)
{
    u64 took = 0;
    for (u32 part = 0; part < TIME_PARTS; part++) {
        u64 ns = time->ns[part] - period->ns[part];
        period->ns[part] = ns;
        took += ns;
    }
    return took;
}

/* Starts tracking a waker, unless it is already exiting. */
OWN_FRAME int begin_following(struct task_struct* task, u32 steps)
{
    static const struct waking_thread none = {};
    u32 tid = task->pid;
    if (task->flags & PF_EXITING)
        return 0;
    if (bpf_map_update_elem(&followed_threads, &tid, &none, BPF_NOEXIST)) {
        lose(LOSS_WAKER, 1);
        return 0;
    }
    struct waking_thread* followed = followed_of(tid);
    if (followed) {
        followed->time.begin_ns = followed->woke_ns = bpf_ktime_get_ns();
        followed->time.tid = tid;
        followed->steps = steps;
        mark_thread(tid, 1);
    }
    return 0;
}

/* Called when `task` has woken a tracked thread. The woken thread is `steps` wake-ups away from a CUDA thread. */
OWN_FRAME int note_wakeup(struct task_struct* task, u32 steps)
{
    if (steps >= WAKERS || time_of(thread_state(task)))
        return 0;
    struct waking_thread* followed = followed_of(task->pid);
    if (!followed)
        return begin_following(task, steps + 1);
    if (followed->steps <= steps)
        return 0; /* `task` has a shorter chain of wake-ups to a CUDA thread, so this wake-up is not recorded */
    struct thread_time* time = &followed->time;
    sync_on_cpu(task, 0, time);
    switch_part(time, 0, 0, 0, UP_TO_NOW);
    end_period(&followed->open, time);
    followed->before = followed->open;
    __builtin_memcpy(followed->open.ns, time->ns, sizeof(time->ns));
    __builtin_memset(&followed->open.waker, 0, sizeof(followed->open.waker));
    followed->known = 1;
    followed->woke_ns = time->begin_ns + (time->now >> TIME_SINCE_SHIFT);
    followed->steps = steps + 1;
    return 0;
}

/* Called when a blocked thread is woken. Only the longest blocked time of a period is recorded, because it is the main
 * reason for the period's length. */
INLINE void end_block(void* ctx, struct task_struct* blocked_task, const struct thread_time* time,
                      struct period* period, u32 steps)
{
    u64 now = time->now;
    u32 off = now & TIME_OFF_BITS;
    if (off == TIME_CPU || off == TIME_ENDED || is_queued(off))
        return; /* the thread is already awake */
    s64 blocked = bpf_ktime_get_ns() - time->begin_ns - (now >> TIME_SINCE_SHIFT);
    struct waker* waker = &period->waker;
    if (blocked <= (s64)waker->blocked_ns)
        return;
    struct task_struct* task = bpf_get_current_task_btf();
    u32 part = time_part_of(now);
    waker->by = wake_cause(ctx, blocked_task, part);
    bool is_known = waker->by == WOKEN_BY_THREAD;
    waker->blocked_ns = blocked;
    waker->part = part;
    waker->tid = is_known ? task->pid : 0;
    waker->pid = is_known ? task->tgid : 0;
    read_comm(task, (u64*)waker->comm);
    describe_block(blocked_task, time, waker);
    if (is_known)
        note_wakeup(task, steps);
}

OWN_FRAME int on_wakeup(void* ctx, struct task_struct* task)
{
    const struct thread_state* thread = thread_state(task);
    struct thread_time* time = time_of(thread);
    if (time) {
        struct open_period* gap = gap_of(thread);
        if (gap)
            end_block(ctx, task, time, &gap->period, 0);
        return 0;
    }
    struct waking_thread* followed = followed_of(task->pid);
    if (followed)
        end_block(ctx, task, &followed->time, &followed->open, followed->steps);
    return 0;
}

INLINE void end_following(u32 tid)
{
    if (follow_wakers && marks[tid & (MARKS - 1)] && !bpf_map_delete_elem(&followed_threads, &tid))
        mark_thread(tid, -1);
}

#endif
