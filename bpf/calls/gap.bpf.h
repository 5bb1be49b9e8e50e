/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Calls, as parts of their thread's time. Of calls in calls the outermost counts. */
#ifndef GPUSNOOP_GAP_BPF_H
#define GPUSNOOP_GAP_BPF_H

#include "base/wanted.bpf.h"
#include "state/gaps.bpf.h"

/* Words of an open call. */
#define AROUND 0 /* what its thread was in before */
#define LAUNCHES 1

INLINE u64 part_of_call(const volatile struct probe_row* row)
{
    switch (row->kind) {
    case KIND_LAUNCH:
    case KIND_LAUNCH_LIST:
    case KIND_LAUNCH_LEGACY:
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
    u64 part = part_of_call(probe_row(number));
    bool launches = !around && part == TIME_LAUNCH;
    call->word[LAUNCHES] = launches;
    turn(time, TIME_CALL_BITS, around ?: part << TIME_CALL_SHIFT, 0, UP_TO_NOW);
    if (wants_gaps() && launches)
        end_gap(thread, time);
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
            begin_gap(thread, time);
    } else if (!call) {
        lose_end(task, false);
    }
}

CALL_PROGRAMS(call, call_entry_body, call_return_body)

#endif
