/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Calls of probed functions, from entry to return. */
#ifndef GPUSNOOP_API_CALL_BPF_H
#define GPUSNOOP_API_CALL_BPF_H

#include "base/call.bpf.h"
#include "base/probe.bpf.h"
#include "base/python.bpf.h"
#include "base/window.bpf.h"

const volatile bool count_runtime = false;   /* set for --api runtime and --api both */
const volatile bool stacks_of_calls = false; /* if true, the stacks of sampled calls are read (take_sample()) */
const volatile __u64 second = 1;             /* jiffies per second */

#define SAMPLES_PER_SECOND 100 /* target number of sampled stacks, per thread and kind of call */
#define SAMPLE_PAUSE_SECONDS 4 /* after this time without a sample, sampling begins again with every call */

/* State that a counted call keeps from entry to return. The kind of call determines which members of the unions are
 * valid. */
struct kept_call {
    struct call call; /* launch list: filled in again for each launch */
    u32 row;
    union {
        u32 count;      /* launch, copy: number of elements in the list of launches or copies */
        u32 pitch_rows; /* allocation with a pitch: number of rows */
        u32 taken_out;  /* free: nonzero if the allocation has been removed from the table of live allocations */
        u32 is_wanted;  /* release, unmapping: nonzero if the thread is traced; the call is then counted even if it
                           frees no known memory */
        u32 node_type;  /* graph call: type of the node that the call adds */
    };
    union {
        u64 list;     /* launch, copy: address of the list's first element */
        u64 out;      /* allocation: where the call stores the new address or handle */
        u64 handle;   /* mapping: handle of the mapped memory */
        u64 physical; /* release: our id for the memory whose handle is released; 0: unknown */
        u64 capture;  /* graph launch: id of the capture that records the launch */
        u64 stream;   /* graph call: its stream argument */
    };
};

_Static_assert(sizeof(struct kept_call) <= OPEN_CALL_WORDS * 8, "struct kept_call must fit into an open call");

/* `at` is COPIED_AT_ENTRY or COPIED_AT_RETURN. */
INLINE void read_native_stack(struct pt_regs* ctx, struct call_key* key, u32 at)
{
    bool returned = at == COPIED_AT_RETURN;
    /* At function entry, frame pointers lead to the caller's caller, because the function has no frame yet. */
    if (window_stacks_mask && GUARDED_CALLS && !FRAMES_ARE_SIGNED) {
        guard_calls_begin(); /* because the window (base/window.bpf.h) is per CPU */
        key->stack = window_stack(PT_REGS_SP(ctx), PT_REGS_FP(ctx), returned ? PT_REGS_IP(ctx) : 0, at);
        key->caller = caller_in_window();
        guard_calls_end();
        if (key->stack < 0)
            keep_stack(ctx, key);
        return;
    }
    if (returned)
        key->caller = PT_REGS_IP(ctx);
    else if (READ_RETURN_ADDRESS(&key->caller, ctx))
        key->caller = 0;
    keep_stack(ctx, key);
}

INLINE void read_stack(struct pt_regs* ctx, struct call_key* key, u32 at)
{
    int stack = NO_PLACE;
    if (follow_python) {
        key->caller = at == COPIED_AT_RETURN ? PT_REGS_IP(ctx) : RETURN_ADDRESS(ctx);
        stack = read_python_stack(PT_REGS_SP(ctx), key->caller, STACK_NOT_READ, at);
        key->stack = stack;
    }
    if (stack >= 0)
        return;
    read_native_stack(ctx, key, at);
    if (follow_python && stack == WITHOUT_PYTHON && key->stack >= 0) {
        stack = read_python_stack(PT_REGS_SP(ctx), key->caller, key->stack, at);
        if (stack >= 0)
            key->stack = stack;
    }
}

/* Samples the stack of every Nth call, for each thread and kind of call, because reading a stack costs more than all
 * other tracing work for a call. N is set each second so that the next second yields about SAMPLES_PER_SECOND stacks;
 * if there are fewer calls, every call is sampled. N then stays the same for a second, so all calls in that second are
 * equally likely to be sampled. N is raised earlier only if the thread's call rate is so high that sampling would
 * noticeably slow the thread down. The distance between samples is random: with a constant distance, the samples of a
 * loop could all be from the same call in its body. */
OWN_FRAME int take_sample(struct pt_regs* ctx, struct call_key* key, u32 kind)
{
    struct thread_state* thread = ctx && key ? thread_state_create(bpf_get_current_task_btf()) : 0;
    if (!thread)
        return 0;
    struct sampling* sampling = &thread->sampling[kind & (SAMPLED - 1)];
    u64 now = bpf_jiffies64(), elapsed = now - sampling->since;
    u64 stride = sampling->stride, taken = ++sampling->taken;
    if (elapsed >= second * SAMPLE_PAUSE_SECONDS)
        stride = 0;
    else if (elapsed >= second)
        stride = (stride + 1) * taken / SAMPLES_PER_SECOND;
    else if (taken >= SAMPLES_PER_SECOND * 4)
        stride = stride * 8 + 7;
    if (elapsed >= second || taken >= SAMPLES_PER_SECOND * 4) {
        sampling->since = now;
        sampling->taken = 0;
        sampling->stride = stride & 0xffffff;
    }
    sampling->left = (u64)bpf_get_prandom_u32() * (sampling->stride * 2 + 1) >> 32;
    read_stack(ctx, key, COPIED_AT_ENTRY);
    FORGET(key->caller);
    FORGET(key->stack);
    return 0;
}

/* After a pause, the next call is sampled even if more calls should have been skipped before it. */
INLINE void sample_call(struct pt_regs* ctx, struct thread_state* thread, const volatile struct probe_row* row,
                        u32 kind, struct call_key* key)
{
    FORGET(key->caller);
    FORGET(key->stack);
    if (kind == SAMPLED_POLLS && row->wait != WAIT_POLL)
        return;
    struct sampling* sampling = thread ? &thread->sampling[kind] : 0;
    if (sampling && sampling->left && bpf_jiffies64() - sampling->since < second * SAMPLE_PAUSE_SECONDS)
        sampling->left--;
    else
        take_sample(ctx, key, kind);
}

/* Fills the fields of a key that all kinds of calls share, except the image, which the caller has set. */
INLINE void begin_key(struct pt_regs* ctx, struct task_struct* task, const volatile struct probe_row* row, u32 number,
                      u32 sampled, struct call_key* key)
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
        read_stack(ctx, key, COPIED_AT_ENTRY);
    if (per_device) {
        struct thread_state* thread = thread_state(task);
        key->device = thread ? (u8)(device_in_image(thread, &key->image, row->layer) - 1) : DEVICE_UNKNOWN;
        if (sampled && stacks_of_calls && !per_stack)
            sample_call(ctx, thread, row, sampled, key);
    }
}

/* Begins a call: returns its row in the probe table, and fills the shared fields of its key. Returns NULL if the call
 * has no row, or if it is a driver call inside a runtime call that is counted instead. */
INLINE const volatile struct probe_row* begin_call_of_row(struct pt_regs* ctx, struct task_struct* task, u32 number,
                                                          u32 sampled, struct kept_call* kept)
{
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
    begin_key(ctx, task, row, number, sampled, key);
    key->flags = opaque(row->asynchronous ? CALL_ASYNCHRONOUS : 0);
    return row;
}

/* `only`: see row_number(). */
INLINE const volatile struct probe_row* begin_sampled_call(struct pt_regs* ctx, struct task_struct* task, u32 sampled,
                                                           u32 only, struct kept_call* kept)
{
    return begin_call_of_row(ctx, task, traced_row_of(ctx, task, only), sampled, kept);
}

INLINE const volatile struct probe_row* begin_call(struct pt_regs* ctx, struct task_struct* task,
                                                   struct kept_call* kept)
{
    return begin_sampled_call(ctx, task, SAMPLED_NONE, 0, kept);
}

/* Like begin_call(), but ignores the filters by thread and name. */
INLINE const volatile struct probe_row* begin_call_of_process(struct pt_regs* ctx, struct task_struct* task,
                                                              struct kept_call* kept)
{
    return begin_call_of_row(ctx, task, traced_row_of_process(ctx, task), SAMPLED_NONE, kept);
}

/* Keeps a call in its thread's state until it returns. If there is no room, returns NULL and counts a loss. */
INLINE struct open_call* keep_call_in(struct pt_regs* ctx, struct thread_state* thread, u64 part,
                                      const struct kept_call* kept, u64 now)
{
    struct open_call* call = open_call_in(ctx, thread, part);
    if (!call)
        return 0;
    call->entry_ns = now;
    __builtin_memcpy(call->word, kept, sizeof(*kept));
    return call;
}

INLINE struct open_call* keep_call(struct pt_regs* ctx, struct task_struct* task, const struct kept_call* kept, u64 now)
{
    return keep_call_in(ctx, thread_state_create(task), PART_COUNT, kept, now);
}

/* A call that is returning. */
struct ended_call {
    struct kept_call* kept;
    u64 entry_ns;
    u64 duration_ns;
};

/* Ends the call that is returning. Returns the state of the thread. Returns NULL if the call's entry was not recorded,
 * or if only failed calls are counted and this call succeeded. */
INLINE struct thread_state* end_call_as(struct pt_regs* ctx, struct task_struct* task, u64 part,
                                        struct ended_call* ended)
{
    struct thread_state* thread = thread_state(task);
    struct open_call* call = thread ? close_call(ctx, thread, part) : 0;
    if (!call) {
        /* With count_runtime, driver calls inside runtime calls are skipped at entry. Their returns are not losses. */
        if (!count_runtime)
            lose_unmatched_return(task, false);
        return 0;
    }
    runtime_leave(ctx, thread);
    ended->kept = (struct kept_call*)call->word;
    ended->entry_ns = call->entry_ns;
    ended->duration_ns = 0;
    struct call_key* key = &ended->kept->call.key;
    key->result = (s32)PT_REGS_RC(ctx);
    if (only_failed && !key->result)
        return 0;
    if (measure_latency) {
        u64 now = bpf_ktime_get_ns();
        ended->duration_ns = now > ended->entry_ns ? now - ended->entry_ns : 0;
        key->duration = duration_bucket(ended->duration_ns);
    }
    return thread;
}

INLINE struct thread_state* end_call(struct pt_regs* ctx, struct task_struct* task, struct ended_call* ended)
{
    return end_call_as(ctx, task, PART_COUNT, ended);
}

#endif
