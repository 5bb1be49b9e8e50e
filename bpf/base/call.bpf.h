/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Counting calls of any kind: in rows of a table, or as one record each. What a tool tells of a call beyond that is its
 * own. */
#ifndef GPUSNOOP_CALL_BPF_H
#define GPUSNOOP_CALL_BPF_H

#include "base/common.bpf.h"
#include "base/process.bpf.h"
#include "base/thread.bpf.h"
#include "shared/call.h"
#include "shared/histogram.h"

/* What the chosen view tells apart; a thing that is not asked for costs nothing and makes no rows. */
const volatile bool per_thread = false;
const volatile bool per_stream = false;
const volatile bool per_device = false;
const volatile bool per_function = false;
const volatile bool per_stack = false;
const volatile bool per_cgroup = false;
const volatile bool per_size = false; /* of copies and memory */

const volatile bool emit_events = false;
const volatile bool need_return = false; /* result or latency */
const volatile bool only_failed = false;
const volatile bool measure_latency = false;
const volatile __u64 least_ns = 0;         /* of calls with a duration, those that are shorter are left out */
const volatile __u64 duration_unit_ns = 1; /* what buckets of the duration count in */

/* The time of its entry is part of a call, also of one whose return nobody waits for. */
INLINE bool times_entries(void)
{
    return emit_events || (measure_latency && need_return);
}

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, 16384); /* set by the front end, as is how much of the key counts */
    __uint(key_size, sizeof(struct call_key));
    __uint(value_size, sizeof(struct call_stats));
} calls SEC(".maps");

/* 0 or CALL_GENERATION: calls count in rows of this one. The front end changes it when the table fills up, waits until
 * no program that has read the old one runs any more, and may then take the rows of that one out: nobody adds to them.
 * It could not do so with a row that is in use: a program that has looked it up adds to it after it has been read and
 * deleted, and by then another key may have its place. */
__u8 generation = 0;

struct {
    __uint(type, BPF_MAP_TYPE_STACK_TRACE);
    __uint(max_entries, 16384);
    __uint(key_size, sizeof(u32));
    __uint(value_size, 127 * sizeof(u64));
} stacks SEC(".maps");

struct call {
    struct call_key key;
    union {
        struct launch_shape shape;
        struct copy copy;
        struct memory_call memory;
        struct graph_call graph;
    };
};

INLINE bool send_call(u32 type, struct task_struct* task, const struct call* call, u64 entry_ns, u64 duration_ns)
{
    struct call_event* event = bpf_ringbuf_reserve(&ring, sizeof(*event), 0);
    if (!event)
        return false;
    event->type = type;
    event->tid = task->pid;
    event->time_ns = entry_ns;
    event->duration_ns = duration_ns;
    event->key = call->key;
    event->shape = call->shape;
    read_comm(task, (u64*)event->comm);
    bpf_ringbuf_submit(event, ring_flags(sizeof(*event)));
    return true;
}

/* Before each line: whose it is. A comparison where the thread has said so before. */
INLINE void introduce_caller(struct task_struct* task, const struct call_key* key)
{
    struct thread_state* thread = thread_state_create(task);
    if (!thread)
        return introduce(&key->image, key->cgroups);
    if (thread->introduced.pid == key->image.pid && thread->introduced.serial == key->image.serial &&
        thread->introduced_in.v2 == key->cgroups.v2 && thread->introduced_in.v1 == key->cgroups.v1)
        return;
    introduce(&key->image, key->cgroups);
    thread->introduced = key->image;
    thread->introduced_in = key->cgroups;
}

/* Not on the stack, which is short. */
struct call_stats no_calls = {};

INLINE struct call_stats* new_row(struct task_struct* task, const struct call_key* key)
{
    introduce(&key->image, per_cgroup ? key->cgroups : cgroups_of(task));
    bpf_map_update_elem(&calls, key, &no_calls, BPF_NOEXIST);
    return bpf_map_lookup_elem(&calls, key);
}

/* The row of a call, with the call counted `times`: the tool adds what it has of its own. 0 where the call has gone to
 * the front end by itself, or is lost. */
INLINE struct call_stats* count_call(struct task_struct* task, struct call* call, u64 times, u64 entry_ns,
                                     u64 duration_ns)
{
    if (emit_events) {
        introduce_caller(task, &call->key); /* per_cgroup, in lines */
        if (!send_call(RECORD_CALL, task, call, entry_ns, duration_ns))
            lose(LOSS_EVENT, 1);
        return 0;
    }
    call->key.flags = (call->key.flags & ~CALL_GENERATION) | generation;
    struct call_stats* stats = bpf_map_lookup_elem(&calls, &call->key);
    if (!stats)
        stats = new_row(task, &call->key);
    if (!stats) {
        /* The table is full: this call goes to the front end by itself, which has more room. */
        if (!send_call(RECORD_SPILL, task, call, entry_ns, duration_ns))
            lose(LOSS_ROW, 1);
        return 0;
    }
    add(&stats->count, times);
    if (measure_latency) {
        add(&stats->total_ns, duration_ns);
        if (duration_ns > stats->max_ns)
            stats->max_ns = duration_ns;
    }
    return stats;
}

/* A 64-bit division takes as long as the rest of this. */
INLINE u16 duration_bucket(u64 ns)
{
    return opaque(histogram_bucket(duration_unit_ns == 1 ? ns : ns / duration_unit_ns));
}

INLINE void keep_stack(void* ctx, struct call_key* key)
{
    key->stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
    if (key->stack == -17 /* EEXIST */) {
        /* Another stack has its place, which its hash decides: without its innermost address it has another one. */
        key->stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK | 1);
        if (key->stack >= 0)
            key->stack |= STACK_WITHOUT_FIRST;
    }
    if (key->stack < 0)
        lose(LOSS_STACK, 1);
}

#endif
