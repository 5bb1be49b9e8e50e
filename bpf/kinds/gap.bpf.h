/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Calls, as parts of their thread's time. Of calls in calls the outermost counts. */
#ifndef GPUSNOOP_GAP_BPF_H
#define GPUSNOOP_GAP_BPF_H

#include "base/wanted.bpf.h"
#include "kinds/gaps.bpf.h"
#include "kinds/naming.bpf.h"
#include "kinds/state.bpf.h"

#define AROUND 0 /* the word of an open call that says what its thread was in before */

INLINE u64 part_of_call(const volatile struct probe_row* row)
{
    switch (row->kind) {
    case KIND_LAUNCH:
    case KIND_LAUNCH_LEGACY:
    case KIND_LAUNCH_LIST:
    case KIND_LAUNCH_ITEMS:
    case KIND_GRAPH_LAUNCH:
    case KIND_HOST_FUNC:
        return TIME_LAUNCH;
    case KIND_COPY:
    case KIND_COPY_BATCH:
    case KIND_COPY_BATCH_3D:
        return TIME_COPY;
    case KIND_WAIT:
        return TIME_WAIT;
    case KIND_ALLOC:
    case KIND_REGISTER_HOST:
    case KIND_FREE:
    case KIND_PHYSICAL_NEW:
    case KIND_PHYSICAL_HOLD:
    case KIND_PHYSICAL_FREE:
    case KIND_MAP:
    case KIND_UNMAP:
    case KIND_TRIM:
        return TIME_MEMORY;
    }
    return TIME_CALL;
}

INLINE u64 handle_of_launch(struct pt_regs* ctx, const volatile struct probe_row* row, struct task_struct* task,
                            struct thread_state* thread)
{
    struct runtime_call* around = naming ? inside_runtime(ctx, task, thread) : 0;
    if (around) {
        struct image image = image_of(task);
        name_launch(ctx, row, &image, around);
    }
    return row->kind == KIND_LAUNCH_LIST ? 0 : register_argument(ctx, row, ARG_FUNC);
}

/* False where it cannot be read. Of a list it is the first one's. */
INLINE bool read_stream(struct pt_regs* ctx, const volatile struct probe_row* row, u64* stream)
{
    struct arguments arguments;
    begin_arguments(ctx, row, &arguments);
    *stream = stream_argument(row, read_argument(&arguments, row, ARG_STREAM));
    if (arguments.error)
        lose(LOSS_ARGUMENTS, 1);
    return !arguments.error;
}

/* By itself, as it is for those who ask for gaps. */
static __attribute__((noinline)) int begin_launch(struct pt_regs* ctx, struct thread_state* thread,
                                                  struct open_call* call, u32 number)
{
    const volatile struct probe_row* row = probe_row(number);
    if (gaps_of_streams && !read_stream(ctx, row, &call->word[STREAM]))
        return 0;
    if (tell_gaps)
        call->word[LAUNCHED] = handle_of_launch(ctx, row, bpf_get_current_task_btf(), thread);
    call->word[LAUNCHES] = number;
    return 0;
}

INLINE int call_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = wanted_row(ctx, task);
    if (!number)
        return 1;
    struct thread_state* thread = thread_state_create(task);
    struct open_call* call = open_call_in(ctx, thread, PART_COUNT);
    if (!call)
        return 0;
    if (!thread->place) {
        begin_time(thread);
        if (wants_gaps())
            forget_gap(thread);
    }
    struct thread_time* time = time_of(thread);
    if (!time)
        return 0;
    has_cpu(task, thread, time);
    u64 around = is_inside_call(thread, call) ? time->now & TIME_CALL_BITS : 0;
    call->word[AROUND] = around;
    const volatile struct probe_row* row = probe_row(number);
    u64 part = part_of_call(row);
    time->apis |= 1U << (row->layer & 7);
    call->word[LAUNCHES] = 0;
    if (wants_gaps() && !around && part == TIME_LAUNCH)
        begin_launch(ctx, thread, call, number);
    turn(time, TIME_CALL_BITS, around ?: part << TIME_CALL_SHIFT, 0, UP_TO_NOW);
    if (wants_gaps() && call->word[LAUNCHES])
        end_gap(thread, time, call);
    return 0;
}

INLINE void call_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct thread_state* thread = thread_state(task);
    struct open_call* call = thread ? close_call(ctx, thread, PART_COUNT) : 0;
    struct thread_time* time = call ? time_of(thread) : 0;
    if (time) {
        has_cpu(task, thread, time);
        turn(time, TIME_CALL_BITS, call->word[AROUND], 0, UP_TO_NOW);
        if (wants_gaps() && call->word[LAUNCHES])
            begin_gap(thread, time, call);
    } else if (!call) {
        lose_end(task, false);
    }
}

/* NCCL calls of a thread that calls CUDA: not counted as its time, but kept, as a later wait may be for them. */
INLINE int collective_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = wanted_row(ctx, task);
    struct thread_time* time = number ? time_of(thread_state(task)) : 0;
    if (time) {
        time->collective = number;
        time->collectives++;
    }
    return 1;
}

ENTRY_PROGRAM(collective_entry, collective_body)

CALL_PROGRAMS(call, call_entry_body, call_return_body)

#endif
