/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Counting calls: in rows of a table, or as one record each. What a tool tells of a call beyond that is its own. */
#ifndef GPUSNOOP_CALL_BPF_H
#define GPUSNOOP_CALL_BPF_H

#include "call.h"
#include "common.bpf.h"
#include "histogram.h"
#include "probe.bpf.h"
#include "process.bpf.h"
#include "thread.bpf.h"

/* What the chosen view tells apart; a thing that is not asked for costs nothing and makes no rows. */
const volatile bool per_thread = false;
const volatile bool per_stream = false;
const volatile bool per_device = false;
const volatile bool per_function = false;
const volatile bool per_stack = false;
const volatile bool per_cgroup = false;

const volatile bool emit_events = false;
const volatile bool need_return = false; /* result or latency */
const volatile bool only_failed = false;
const volatile bool measure_latency = false;
const volatile __u64 duration_unit_ns = 1; /* what buckets of the duration count in */
const volatile bool count_runtime = false; /* --api runtime, both */

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, 16384); /* set by the front end, as is how much of the key counts */
    __uint(key_size, sizeof(struct call_key));
    __uint(value_size, sizeof(struct call_stats));
} calls SEC(".maps");

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

/* What the return probe needs of the entry. */
struct kept_call {
    struct call call; /* of a list: not read yet */
    u32 row;
    u32 count; /* of a list */
    u64 list;  /* or another word that a tool keeps */
};

_Static_assert(sizeof(struct kept_call) <= OPEN_CALL_WORDS * 8, "a call is kept in an open call");

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
    bpf_get_current_comm(event->comm, sizeof(event->comm));
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
INLINE struct call_stats* count_call(struct task_struct* task, const struct call* call, u64 times, u64 entry_ns,
                                     u64 duration_ns)
{
    if (emit_events) {
        introduce_caller(task, &call->key); /* per_cgroup, in lines */
        if (!send_call(RECORD_CALL, task, call, entry_ns, duration_ns))
            lose(LOSS_EVENT, 1);
        return 0;
    }
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
    return histogram_bucket(duration_unit_ns == 1 ? ns : ns / duration_unit_ns);
}

INLINE void read_stack(struct pt_regs* ctx, struct call_key* key)
{
    /* Frame pointers lead to the caller's caller: at the entry of a function its own frame does not exist yet. */
    if (bpf_probe_read_user(&key->caller, sizeof(key->caller), (void*)ctx->sp))
        key->caller = 0;
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

/* What is read of every call alike; the image is there already. */
INLINE void begin_key(struct pt_regs* ctx, struct task_struct* task, const volatile struct probe_row* row, u32 number,
                      struct call_key* key)
{
    key->layer = row->layer;
    key->duration = BUCKET_NONE;
    key->stack = -1;
    key->device = DEVICE_UNKNOWN;
    if (per_function)
        key->function = number;
    if (per_thread)
        key->tid = task->pid;
    if (per_cgroup)
        key->cgroups = cgroups_of(task);
    if (per_stack)
        read_stack(ctx, key);
    if (per_device) {
        struct thread_state* thread = thread_state(task);
        key->device = thread ? (u8)(thread->device - 1) : DEVICE_UNKNOWN;
    }
}

/* The runtime call around a driver call that is not to be counted again. */
INLINE struct runtime_call* runtime_call_around(struct pt_regs* ctx, struct task_struct* task)
{
    struct thread_state* thread = thread_state(task);
    return thread ? inside_runtime(ctx, task, thread) : 0;
}

/* A runtime call begins: `calls` of the driver are expected inside. */
INLINE void mark_runtime(struct pt_regs* ctx, struct task_struct* task, u64 func, u32 driver_calls)
{
    struct thread_state* thread = thread_state_create(task);
    if (thread)
        runtime_enter(ctx, thread, func, driver_calls);
    else
        lose(LOSS_START, 1);
}

/* A call that somebody asked for begins: its row, and of its key what all calls have. 0 where it is not to be counted:
 * it is the inner half of a call that is counted at the runtime. */
INLINE const volatile struct probe_row* begin_wanted_call(struct pt_regs* ctx, struct task_struct* task,
                                                          struct kept_call* kept)
{
    u32 number = row_number(ctx);
    if (!number)
        return 0;
    const volatile struct probe_row* row = probe_row(number);
    struct call_key* key = &kept->call.key;
    kept->row = number;
    key->image = image_of(task);
    if (row->layer == LAYER_RUNTIME)
        mark_runtime(ctx, task, 0, DRIVER_CALLS_ANY);
    else if (count_runtime && runtime_call_around(ctx, task))
        return 0;
    begin_key(ctx, task, row, number, key);
    key->flags = opaque(row->asynchronous ? CALL_ASYNCHRONOUS : 0);
    return row;
}

INLINE const volatile struct probe_row* begin_call(struct pt_regs* ctx, struct task_struct* task,
                                                   struct kept_call* kept)
{
    return wanted(task) ? begin_wanted_call(ctx, task, kept) : 0;
}

/* The same of any thread of a process that somebody asked for. */
INLINE const volatile struct probe_row* begin_call_of_process(struct pt_regs* ctx, struct task_struct* task,
                                                              struct kept_call* kept)
{
    return wanted_process(task) ? begin_wanted_call(ctx, task, kept) : 0;
}

/* The thread that keeps it; 0 where there is no room for it, which is counted. */
INLINE struct thread_state* keep_call(struct pt_regs* ctx, struct task_struct* task, const struct kept_call* kept,
                                      u64 now)
{
    struct thread_state* thread = thread_state_create(task);
    struct open_call* call = thread ? open_call(ctx, thread) : 0;
    if (!call) {
        lose(LOSS_START, 1);
        return 0;
    }
    call->entry_ns = now;
    __builtin_memcpy(call->word, kept, sizeof(*kept));
    return thread;
}

/* The call that returns here, with its result and duration. */
struct ended_call {
    struct kept_call* kept;
    u64 entry_ns;
    u64 duration_ns;
};

/* The thread that kept it; 0 where it was not kept, or is not to be counted. */
INLINE struct thread_state* end_call(struct pt_regs* ctx, struct task_struct* task, struct ended_call* ended)
{
    struct thread_state* thread = thread_state(task);
    struct open_call* call = thread ? close_call(ctx, thread) : 0;
    if (!call) {
        /* Inner halves of runtime calls were left out at entry, on purpose. */
        if (!count_runtime)
            lose(LOSS_END, 1);
        return 0;
    }
    runtime_leave(ctx, thread);
    ended->kept = (struct kept_call*)call->word;
    ended->entry_ns = call->entry_ns;
    ended->duration_ns = 0;
    struct call_key* key = &ended->kept->call.key;
    key->result = (s32)ctx->ax;
    if (only_failed && !key->result)
        return 0;
    if (measure_latency) {
        u64 now = bpf_ktime_get_ns();
        ended->duration_ns = now > ended->entry_ns ? now - ended->entry_ns : 0;
        key->duration = duration_bucket(ended->duration_ns);
    }
    return thread;
}

#endif
