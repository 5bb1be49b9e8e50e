/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Programs that follow graphs and captures for those who count something else. */
#ifndef GPUSNOOP_GRAPH_STATE_BPF_H
#define GPUSNOOP_GRAPH_STATE_BPF_H

#include "base/api_call.bpf.h"
#include "kinds/event.bpf.h"
#include "kinds/graph.bpf.h"

INLINE void fill_from_nodes(struct call* call, const struct graph_nodes* nodes)
{
    call->graph.kernels = nodes->of[NODE_KERNEL];
    call->graph.copies = nodes->of[NODE_COPY] + nodes->of[NODE_SET];
    call->graph.others = nodes->of[NODE_HOST] + nodes->of[NODE_OTHER];
    call->graph.unknown = nodes->unknown;
}

INLINE void add_graph_to(struct call_stats* stats, const struct call* call)
{
    u64 sums[CALL_FIGURES] = {};
    sums_of_graph(&call->key, &call->graph, sums);
    add_own(stats, sums);
}

const volatile bool count_graphs = false; /* captures and instantiations, besides following them */

/* Counts a call where its words were kept, which nobody needs any more: as a key it must lie in a map, not in the
 * memory of a caller (before 6.2). */
static __attribute__((noinline)) int count_followed(struct pt_regs* ctx, struct open_call* open, u32 number)
{
    if (!ctx || !open)
        return 0;
    struct task_struct* task = bpf_get_current_task_btf();
    const volatile struct probe_row* row = probe_row(number);
    struct call* call = (struct call*)open->word;
    __builtin_memset(call, 0, sizeof(*call));
    call->key.image = image_of(task);
    begin_key(ctx, task, row, number, SAMPLED_NONE, &call->key);
    call->key.kind = row->kind;
    call->key.result = (s32)PT_REGS_RC(ctx);
    count_call(task, call, 1, 0, 0);
    return 0;
}

/* What is kept in an open call, behind its row. */
struct followed_graph {
    struct graph_words words;
    u64 exec; /* its number */
};

_Static_assert(sizeof(struct followed_graph) <= (OPEN_CALL_WORDS - 1) * 8, "kept in an open call");

INLINE int follow_entry_body(struct pt_regs* ctx)
{
    struct followed at;
    struct arguments arguments;
    struct followed_graph graph;
    if (!follow_call(ctx, PART_STATE, &at))
        return 1;
    begin_arguments(ctx, at.row, &arguments);
    read_graph_words(&arguments, at.row, &graph.words);
    struct image image = image_of(at.task);
    struct graph_exec* exec = graph.words.exec ? exec_of(&image, graph.words.exec) : 0;
    graph.exec = exec ? exec->number : 0;
    graph_call_destroys(&image, at.row->kind, &graph.words);
    __builtin_memcpy(&at.call->word[FOLLOWED_ROW + 1], &graph, sizeof(graph));
    return 0;
}

INLINE int follow_return_body(struct pt_regs* ctx)
{
    struct followed at;
    struct followed_graph graph;
    if (!followed_returns(ctx, PART_STATE, &at))
        return 0;
    __builtin_memcpy(&graph, &at.call->word[FOLLOWED_ROW + 1], sizeof(graph));
    struct image image = image_of(at.task);
    s32 result = PT_REGS_RC(ctx);
    u64 now = bpf_ktime_get_ns();
    u32 number = at.call->word[FOLLOWED_ROW];
    if (makes_graphs(at.row->kind))
        introduce(&image, cgroups_of(untrusted(at.task)));
    if (at.row->kind == KIND_CAPTURE_END)
        follow_capture_end(&image, &graph.words, result, now);
    else if (!result)
        follow_graph_call(&image, at.row, &graph.words, graph.exec, now, 0);
    graph_call_destroyed(&image, at.row->kind, &graph.words, graph.exec, !result);
    if (count_graphs && (at.row->kind == KIND_CAPTURE_END || at.row->kind == KIND_GRAPH_INSTANTIATE) && wanted(at.task))
        count_followed(ctx, at.call, number);
    return 0;
}

CALL_PROGRAMS(follow, follow_entry_body, follow_return_body)

#endif
