/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Who ends the blocks of threads that call, and what kept those: who has woken one is followed from then on, and so are
 * those that wake them, some steps back. */
#ifndef GPUSNOOP_WAKERS_BPF_H
#define GPUSNOOP_WAKERS_BPF_H

#include "kinds/block_file.bpf.h"
#include "kinds/on_cpu.bpf.h"
#include "kinds/wake_cause.bpf.h"
#include "shared/gap.h"

const volatile bool follow_wakers = false;

/* Gaps that threads are in. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, PLACES_MAX); /* 1 where gaps are not asked for, or each stream has its own */
    __type(key, u32);
    __type(value, struct open_period);
} gaps SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH); /* of memory that is there: there is none to be had where threads wake */
    __uint(max_entries, 1024);       /* 1 where wakers are not asked for */
    __type(key, u32);
    __type(value, struct waking_thread);
} followed_threads SEC(".maps");

INLINE struct waking_thread* followed_of(u32 tid)
{
    return bpf_map_lookup_elem(&followed_threads, &tid);
}

INLINE struct open_period* gap_of(const struct thread_state* thread)
{
    u32 place = thread->place - 1;
    return bpf_map_lookup_elem(&gaps, &place);
}

/* Of a thread that calls, or wakes one. */
INLINE struct thread_time* any_time_of(const struct thread_state* thread, struct task_struct* task)
{
    struct thread_time* time = time_of(thread);
    if (time || !follow_wakers)
        return time;
    struct waking_thread* followed = followed_of(task->pid);
    return followed ? &followed->time : 0;
}

/* From now on its parts are those of the period alone. How long that was. */
static __attribute__((noinline)) u64 end_period(struct period* period, const struct thread_time* time)
{
    u64 took = 0;
    for (u32 part = 0; part < TIME_PARTS; part++) {
        u64 ns = time->ns[part] - period->ns[part];
        period->ns[part] = ns;
        took += ns;
    }
    return took;
}

/* Not one that has told that it ends. */
static __attribute__((noinline)) int begin_following(struct task_struct* task, u32 steps)
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
        mark(tid, 1);
    }
    return 0;
}

/* The thread has woken one of ours, which is so many steps from one that calls. */
static __attribute__((noinline)) int has_woken(struct task_struct* task, u32 steps)
{
    if (steps >= WAKERS || time_of(thread_state(task)))
        return 0;
    struct waking_thread* followed = followed_of(task->pid);
    if (!followed)
        return begin_following(task, steps + 1);
    if (followed->steps <= steps)
        return 0; /* it is nearer itself: this is no end of what it did for ours */
    struct thread_time* time = &followed->time;
    has_cpu(task, 0, time);
    turn(time, 0, 0, 0, UP_TO_NOW);
    end_period(&followed->open, time);
    followed->before = followed->open;
    __builtin_memcpy(followed->open.ns, time->ns, sizeof(time->ns));
    __builtin_memset(&followed->open.waker, 0, sizeof(followed->open.waker));
    followed->known = 1;
    followed->woke_ns = time->begin_ns + (time->now >> TIME_SINCE_SHIFT);
    followed->steps = steps + 1;
    return 0;
}

/* Only the longest block of a period counts: that is what the thread has waited for. */
INLINE void end_block(void* ctx, struct task_struct* blocked_one, const struct thread_time* time, struct period* period,
                      u32 steps)
{
    u64 now = time->now;
    u32 off = now & TIME_OFF_BITS;
    if (off == TIME_CPU || off == TIME_ENDED || is_queued(off))
        return; /* it is awake */
    s64 blocked = bpf_ktime_get_ns() - time->begin_ns - (now >> TIME_SINCE_SHIFT);
    struct waker* waker = &period->waker;
    if (blocked <= (s64)waker->blocked_ns)
        return;
    struct task_struct* task = bpf_get_current_task_btf();
    u32 part = time_part_of(now);
    waker->by = wake_cause(ctx, blocked_one, part);
    bool is_known = waker->by == WOKEN_BY_THREAD;
    waker->blocked_ns = blocked;
    waker->part = part;
    waker->tid = is_known ? task->pid : 0;
    waker->pid = is_known ? task->tgid : 0;
    read_comm(task, (u64*)waker->comm);
    describe_block(blocked_one, time, waker);
    if (is_known)
        has_woken(task, steps);
}

static __attribute__((noinline)) int wake(void* ctx, struct task_struct* task)
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

/* The thread ends, or becomes another program. */
INLINE void end_following(u32 tid)
{
    if (follow_wakers && marks[tid & (MARKS - 1)] && !bpf_map_delete_elem(&followed_threads, &tid))
        mark(tid, -1);
}

#endif
