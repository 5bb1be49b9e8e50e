/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Time of the threads that make calls, divided into parts (enum time_part), including waits for a CPU. */
#ifndef GPUSNOOP_THREAD_TIME_BPF_H
#define GPUSNOOP_THREAD_TIME_BPF_H

#include "base/common.bpf.h"
#include "base/machine.bpf.h"
#include "base/places.bpf.h"
#include "base/process.bpf.h"
#include "shared/thread_time.h"

/* The time that a thread was runnable but had no CPU, and how much of that time its cgroup was throttled. The scheduler
 * measures both times, so wake-ups need not be traced. */

#define HAS_QUOTAS bpf_core_field_exists(struct cfs_rq, throttle_count)
#define HAS_THROTTLED_TIME bpf_core_field_exists(struct cfs_rq, throttled_clock_self_time) /* since 6.6 */

/* Returns the total time that a run queue has been throttled. */
INLINE u64 throttled_so_far(struct cfs_rq* queue)
{
    u64 since = READ(queue, throttled_clock_self);
    return READ(queue, throttled_clock_self_time) + (since ? READ(queue, rq, clock) - since : 0);
}

INLINE bool is_throttled(struct task_struct* task)
{
    struct task_struct___6_18* later = (void*)task;
    if (bpf_core_field_exists(later->throttled))
        return READ(later, throttled);
    return HAS_QUOTAS && READ(task, se.cfs_rq, throttle_count) > 0;
}

/* Called when the thread leaves its CPU. Records the values that end_queueing() needs. */
INLINE void begin_queueing(struct task_struct* task, struct thread_time* time)
{
    time->queued_before = task->sched_info.run_delay;
    time->clock_before = untrusted(task)->se.cfs_rq->rq->clock;
    if (!HAS_THROTTLED_TIME)
        return;
    struct cfs_rq* queue = untrusted(task)->se.cfs_rq;
    time->queue = (u64)queue;
    time->throttled_before = throttled_so_far(queue);
}

/* Returns the time that the thread has waited for a CPU since begin_queueing(). At the tracepoint of the switch to a
 * CPU, sched_info.run_delay does not include this wait yet, because the kernel calls sched_info_arrive() later. */
INLINE u64 end_queueing(struct task_struct* task, const struct thread_time* time)
{
    u64 since = task->sched_info.last_queued, now = untrusted(task)->se.cfs_rq->rq->clock;
    return task->sched_info.run_delay - time->queued_before + (since && since < now ? now - since : 0);
}

/* Returns the time that a thread was off the CPU. Must be called when the thread has a CPU again. */
INLINE u64 off_cpu_ns(struct task_struct* task, const struct thread_time* time)
{
    return task->sched_info.last_arrival - time->clock_before;
}

/* Returns for how long the thread was throttled during the `queued_ns` in which it waited for a CPU. */
INLINE u64 throttled_of(const struct thread_time* time, u32 part, u64 queued_ns)
{
    if (!HAS_THROTTLED_TIME)
        return part == TIME_THROTTLED ? queued_ns : 0;
    s64 throttled = throttled_so_far((struct cfs_rq*)time->queue) - time->throttled_before;
    if (throttled < 0) /* the queue's cgroup was removed, and the queue's memory was reused */
        return 0;
    return (u64)throttled < queued_ns ? throttled : queued_ns;
}

/* The tracked threads, and their transitions from one part of their time (enum time_part) to another, for example from
 * TIME_CPU to TIME_RUNQ. */

const volatile bool follow_switches = true; /* if false, only the scheduler's totals for each thread are read */

MMAPABLE_ARRAY_MAP(thread_times, PLACES_MAX, struct thread_time);

/* Number of tracked threads for each hash of a thread id. For most untracked threads, our scheduler programs only look
 * up a zero in this array. */
#define MARKS 4096 /* a power of two */
__u32 marks[MARKS] = {};

INLINE bool may_have_time(struct task_struct* task)
{
    return marks[task->pid & (MARKS - 1)];
}

INLINE void mark_thread(u32 tid, s32 change)
{
    __sync_fetch_and_add(&marks[tid & (MARKS - 1)], change);
}

/* Returns NULL if the thread is not tracked, or if no place was free for it. */
INLINE struct thread_time* time_of(const struct thread_state* thread)
{
    if (!thread || !thread->place)
        return 0;
    u32 place = thread->place - 1;
    return bpf_map_lookup_elem(&thread_times, &place);
}

INLINE void read_cpu_use(struct task_struct* task, struct cpu_use* use)
{
    use->used_ns = task->se.sum_exec_runtime;
    use->waited_ns = task->sched_info.run_delay;
    use->timeslices = task->sched_info.pcount;
}

/* Starts tracking a thread's time, at its first call. */
OWN_FRAME int begin_time(struct thread_state* thread)
{
    struct task_struct* task = bpf_get_current_task_btf();
    thread->place = new_place() + 1;
    struct thread_time* time = time_of(thread);
    if (!time) {
        lose(LOSS_THREAD, 1);
        return 0;
    }
    struct image image = image_of(task);
    struct cgroups cgroups = cgroups_of(untrusted(task));
    introduce(&image, cgroups);
    time->image = image;
    time->cgroups = cgroups;
    time->tid = task->pid;
    time->faults_before = task->maj_flt;
    read_comm(task, (u64*)time->comm);
    if (!follow_switches)
        read_cpu_use(task, &time->at_begin);
    store_ordered(&time->begin_ns, bpf_ktime_get_ns());
    mark_thread(task->pid, 1);
    return 0;
}

#define UP_TO_NOW (~0ULL)

/* Sets `bits` of a thread's current state to `to`. Adds the time since the last change, but at most `at_most` ns, to
 * the part that the thread leaves. `queued` ns of this time are divided between TIME_RUNQ and TIME_THROTTLED instead.
 * If programs can be preempted, the scheduler's tracepoint may interrupt this function and change the state. So only
 * the program whose compare-and-swap of time->now succeeds adds the time. */
OWN_FRAME int switch_part(struct thread_time* time, u64 bits, u64 to, u64 queued, u64 at_most)
{
    for (int i = 0; i < 4; i++) {
        u64 before = *(volatile u64*)&time->now;
        u32 part = time_part_of(before);
        if (part >= TIME_PARTS)
            return 0;
        u64 since = before >> TIME_SINCE_SHIFT, until = bpf_ktime_get_ns() - time->begin_ns;
        if (until < since) /* the clock may go back by a few ns when it is adjusted (timekeeping.c) */
            until = since;
        if (until - since > at_most)
            until = since + at_most;
        u64 after = until << TIME_SINCE_SHIFT | (before & ~bits & ((1 << TIME_SINCE_SHIFT) - 1)) | to;
        if (__sync_val_compare_and_swap(&time->now, before, after) != before)
            continue;
        u64 elapsed = until - since;
        if (is_queued(part) || queued > elapsed)
            queued = elapsed;
        if (queued) {
            u64 throttled = throttled_of(time, part, queued);
            add(&time->ns[TIME_THROTTLED], throttled);
            add(&time->ns[TIME_RUNQ], queued - throttled);
        }
        u64 of_part = part;
        PIN(of_part);
        if (of_part < TIME_PARTS)
            add(&time->ns[of_part], elapsed - queued);
        return 0;
    }
    lose(LOSS_TIME_PART, 1);
    return 0;
}

#endif
