/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Threads that could run: how much of their time off a CPU is a wait for one, and how much of that is because their
 * cgroup had used up its quota. The scheduler keeps account of both, so that no wake-up has to be looked at. */
#ifndef GPUSNOOP_QUEUEING_BPF_H
#define GPUSNOOP_QUEUEING_BPF_H

#include "base/common.bpf.h"
#include "shared/thread_time.h"

#define HAS_QUOTAS bpf_core_field_exists(struct cfs_rq, throttle_count)
#define HAS_THROTTLED_TIME bpf_core_field_exists(struct cfs_rq, throttled_clock_self_time) /* 6.6 */

/* For how long a queue has been throttled since it is there. */
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

/* It leaves its CPU: what end_queueing() needs to know. */
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

/* It gets a CPU, and is not yet taken for one that has it (sched_info_arrive() comes after the tracepoint); or has had
 * it for some time: for how long it has waited for that. */
INLINE u64 end_queueing(struct task_struct* task, const struct thread_time* time)
{
    u64 since = task->sched_info.last_queued, now = untrusted(task)->se.cfs_rq->rq->clock;
    return task->sched_info.run_delay - time->queued_before + (since && since < now ? now - since : 0);
}

/* It has a CPU: for how long it had none. */
INLINE u64 was_away(struct task_struct* task, const struct thread_time* time)
{
    return task->sched_info.last_arrival - time->clock_before;
}

/* How much of that is because of the quota. */
INLINE u64 throttled_of(const struct thread_time* time, u32 part, u64 queued_ns)
{
    if (!HAS_THROTTLED_TIME)
        return part == TIME_THROTTLED ? queued_ns : 0;
    s64 throttled = throttled_so_far((struct cfs_rq*)time->queue) - time->throttled_before;
    if (throttled < 0) /* its cgroup is gone, and the memory is another's */
        return 0;
    return (u64)throttled < queued_ns ? throttled : queued_ns;
}

#endif
