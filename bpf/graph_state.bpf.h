/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Programs that follow graphs and captures for those who count something else. */
#ifndef GPUSNOOP_GRAPH_STATE_BPF_H
#define GPUSNOOP_GRAPH_STATE_BPF_H

#include "api_call.bpf.h"
#include "graph.bpf.h"

INLINE void tell_nodes(struct call* call, const struct graph_nodes* nodes)
{
    call->graph.kernels = nodes->of[NODE_KERNEL];
    call->graph.copies = nodes->of[NODE_COPY] + nodes->of[NODE_SET];
    call->graph.others = nodes->of[NODE_HOST] + nodes->of[NODE_OTHER];
    call->graph.unknown = nodes->unknown;
}

INLINE void add_launch(struct call_stats* stats, const struct call* call)
{
    add(&stats->graph.kernels, call->graph.kernels);
    if (call->graph.unknown)
        add(&stats->graph.unknown, 1);
}

struct followed_call {
    struct graph_words words;
    u64 row;
    u64 exec; /* its number */
};

_Static_assert(sizeof(struct followed_call) <= OPEN_CALL_WORDS * 8, "kept in an open call");

INLINE int follow_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct arguments arguments;
    u32 number = row_number(ctx);
    if (!number || !wanted_process(task))
        return 1;
    const volatile struct probe_row* row = probe_row(number);
    struct open_call* call = open_call_of(ctx, task, PART_STATE);
    if (!call)
        return 1;
    struct followed_call followed = {.row = number};
    begin_arguments(ctx, row, &arguments);
    read_graph_words(&arguments, row, &followed.words);
    struct image image = image_of(task);
    struct graph_exec* exec = followed.words.exec ? exec_of(&image, followed.words.exec) : 0;
    followed.exec = exec ? exec->number : 0;
    graph_call_destroys(&image, row->kind, &followed.words);
    __builtin_memcpy(call->word, &followed, sizeof(followed));
    return 0;
}

INLINE int follow_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct thread_state* thread = thread_state(task);
    struct open_call* call = close_call_of(ctx, thread, PART_STATE);
    if (!call)
        return 0;
    struct followed_call followed;
    __builtin_memcpy(&followed, call->word, sizeof(followed));
    const volatile struct probe_row* row = probe_row(followed.row);
    struct image image = image_of(task);
    s32 result = ctx->ax;
    u64 now = bpf_ktime_get_ns();
    if (row->kind == KIND_CAPTURE_END)
        follow_capture_end(&image, &followed.words, result, now);
    else if (!result)
        follow_graph_call(&image, row, &followed.words, followed.exec, now, 0);
    graph_call_destroyed(&image, row->kind, &followed.words, followed.exec, !result);
    return 0;
}

CALL_PROGRAMS(follow, follow_entry_body, follow_return_body)

/* Streams join captures by events. */
INLINE int event_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = row_number(ctx);
    if (!number || !captures_open || !wanted_process(task))
        return 1;
    const volatile struct probe_row* row = probe_row(number);
    struct image image = image_of(task);
    u64 stream = stream_argument(row, register_argument(ctx, row, ARG_STREAM));
    u64 event = register_argument(ctx, row, ARG_HANDLE);
    if (row->kind == KIND_EVENT_RECORD)
        event_recorded(&image, event, stream);
    else
        event_waited_for(&image, event, stream);
    return 1;
}

GUARDED_PROGRAM(event_entry, event_body)

#endif
