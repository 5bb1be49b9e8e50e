/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The life of graphs: captured or built, instantiated, launched, updated, destroyed. */
#include "call.bpf.h"
#include "graph.bpf.h"
#include "graph_record.h"
#include "state.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile bool count_launches = false; /* of kernels, without a graph */

INLINE void tell_nodes(struct call* call, const struct graph_nodes* nodes)
{
    call->graph.kernels = nodes->of[NODE_KERNEL];
    call->graph.copies = nodes->of[NODE_COPY] + nodes->of[NODE_SET];
    call->graph.others = nodes->of[NODE_HOST] + nodes->of[NODE_OTHER];
    call->graph.unknown = nodes->unknown;
}

static __attribute__((noinline)) int count_graph(struct task_struct* task, const struct call* call, u64 entry_ns,
                                                 u64 duration_ns, u64 capture_ns)
{
    if (!task || !call)
        return 0;
    struct call_stats* stats = count_call(task, call, 1, entry_ns, duration_ns);
    if (!stats)
        return 0;
    if (call->key.kind == KIND_GRAPH_LAUNCH && !call->key.result && !(call->key.flags & CALL_RECORDED))
        add(&stats->graph.kernels, call->graph.kernels);
    if (capture_ns)
        add(&stats->graph.capture_ns, capture_ns);
    return 0;
}

/* Launches of graphs. */
INLINE int launch_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct kept_call kept = {};
    const volatile struct probe_row* row = begin_call(ctx, task, &kept);
    if (!row)
        return 1;
    struct call_key* key = &kept.call.key;
    u64 handle = register_argument(ctx, row, ARG_FUNC);
    struct graph_exec* exec = exec_met(&key->image, handle);
    key->kind = KIND_GRAPH_LAUNCH;
    kept.call.graph.exec = handle;
    if (exec) {
        key->subject = exec->number;
        kept.call.graph.graph = exec->graph;
        tell_nodes(&kept.call, &exec->nodes);
    }
    if (per_stream || captures_begun) {
        u64 stream = stream_argument(row, register_argument(ctx, row, ARG_STREAM));
        if (per_stream)
            key->stream = stream;
        struct capture* capture = capture_of(&key->image, stream);
        if (capture) {
            key->flags |= CALL_RECORDED;
            if (exec)
                add_nodes(&capture->nodes, &exec->nodes); /* it becomes a child graph */
        }
    }
    u64 now = measure_latency || emit_events ? bpf_ktime_get_ns() : 0;
    if (need_return)
        return keep_call(ctx, task, &kept, now) ? 0 : 1;
    count_graph(task, &kept.call, now, 0, 0);
    return 1;
}

INLINE int launch_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct ended_call ended;
    if (end_call(ctx, task, &ended))
        count_graph(task, &ended.kept.call, ended.entry_ns, ended.duration_ns, 0);
    return 0;
}

CALL_PROGRAMS(launch, launch_entry_body, launch_return_body)

/* All other calls of a graph. */
INLINE int graph_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct arguments arguments;
    struct kept_call kept = {};
    const volatile struct probe_row* row = begin_call(ctx, task, &kept);
    if (!row)
        return 1;
    struct call_key* key = &kept.call.key;
    u64* word = (u64*)&kept.call.graph;
    begin_arguments(ctx, row, &arguments);
    key->kind = row->kind == KIND_ALLOC || row->kind == KIND_FREE ? KIND_GRAPH_NODE : row->kind;
    word[0] = read_argument(&arguments, row, ARG_GRAPH);
    word[1] = read_argument(&arguments, row, ARG_FUNC);
    word[2] = read_argument(&arguments, row, ARG_OUT);
    word[3] = read_argument(&arguments, row, ARG_CHILD);
    kept.count = has_argument(row, ARG_NODE_TYPE) ? read_argument(&arguments, row, ARG_NODE_TYPE) : NODE_TYPE_GRAPH;
    kept.list = stream_argument(row, read_argument(&arguments, row, ARG_STREAM));
    if (per_stream)
        key->stream = kept.list;
    if (arguments.error)
        lose(LOSS_ARGUMENTS, 1);
    return keep_call(ctx, task, &kept, bpf_ktime_get_ns()) ? 0 : 1;
}

INLINE void send_exec_ended(const struct image* image, u64 handle, const struct graph_exec* exec)
{
    struct exec_record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        lose(LOSS_STATE, 1);
        return;
    }
    record->type = RECORD_EXEC_ENDED;
    record->zero = 0;
    record->image = *image;
    record->handle = handle;
    record->exec = *exec;
    bpf_ringbuf_submit(record, ring_flags(sizeof(*record)));
}

/* What a capture has recorded becomes a graph, or part of one. */
INLINE u64 captured(struct call* call, u64 stream, u64 out, u64 now)
{
    const struct image* image = &call->key.image;
    struct capture ended = {.nodes = {.unknown = 1}};
    bool known = capture_end(image, stream, &ended);
    if (call->key.result)
        return known ? now - ended.begun_ns : 0;
    u64 handle = ended.graph ?: read_word(out);
    struct graph* graph = ended.graph ? graph_of(image, handle) : 0;
    if (graph)
        add_nodes(&graph->nodes, &ended.nodes);
    else
        graph_made(image, handle, &ended.nodes, now);
    call->graph.graph = handle;
    return known ? now - ended.begun_ns : 0;
}

INLINE u32 node_kind(const volatile struct probe_row* row, u32 type)
{
    if (row->holding == HOLDING_GRAPH)
        return NODE_OTHER;
    return row->node != NODE_UNTOLD ? row->node : node_of_type[type & 15];
}

/* The call has succeeded: what there is now, and what there is no more. */
INLINE void follow_call(struct call* call, const volatile struct probe_row* row, const u64* word, u32 type, u64 now,
                        u64 took_ns)
{
    const struct image* image = &call->key.image;
    struct graph_exec* exec;
    switch (call->key.kind) {
    case KIND_GRAPH_NEW: {
        struct graph_nodes nodes = {};
        if (word[0])
            nodes = nodes_of_graph(image, word[0]);
        call->graph.graph = read_word(word[2]);
        graph_made(image, call->graph.graph, &nodes, now);
        break;
    }
    case KIND_GRAPH_NODE:
        graph_node_added(image, word[0], node_kind(row, type), type == NODE_TYPE_GRAPH ? word[3] : 0);
        break;
    case KIND_GRAPH_INSTANTIATE:
        call->graph.exec = read_word(word[2]);
        exec = exec_made(image, call->graph.exec, word[0], now, took_ns);
        call->key.subject = exec ? exec->number : 0;
        break;
    case KIND_GRAPH_UPDATE:
        exec = exec_of(image, word[1]);
        if (exec)
            exec->nodes = nodes_of_graph(image, word[0]);
        break;
    }
}

INLINE int graph_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct ended_call ended;
    if (!end_call(ctx, task, &ended))
        return 0;
    struct call* call = &ended.kept.call;
    struct call_key* key = &call->key;
    const volatile struct probe_row* row = probe_row(ended.kept.row);
    u64 word[4];
    __builtin_memcpy(word, &call->graph, sizeof(word));
    call->graph = (struct graph_call){.graph = word[0], .exec = word[1]};
    u64 now = bpf_ktime_get_ns(), capture_ns = 0;
    u64 took_ns = now > ended.entry_ns ? now - ended.entry_ns : 0;
    u32 kind = key->kind;
    if (kind == KIND_CAPTURE_BEGIN && !key->result)
        capture_begin(&key->image, ended.kept.list, word[0]);
    else if (kind == KIND_CAPTURE_END)
        capture_ns = captured(call, ended.kept.list, word[2], now);
    else if (!key->result)
        follow_call(call, row, word, ended.kept.count, now, took_ns);
    if (kind == KIND_GRAPH_UPDATE) {
        u32 reason = UPDATE_UNTOLD;
        bpf_probe_read_user(&reason, sizeof(reason), (void*)word[2]);
        key->graph.reason = reason;
    }
    struct graph_exec* exec = call->graph.exec ? exec_of(&key->image, call->graph.exec) : 0;
    struct graph* graph = exec ? 0 : graph_of(&key->image, call->graph.graph);
    if (exec) {
        key->subject = exec->number;
        call->graph.graph = call->graph.graph ?: exec->graph;
        tell_nodes(call, &exec->nodes);
    } else if (graph) {
        tell_nodes(call, &graph->nodes);
    } else {
        call->graph.unknown = 1;
    }
    if (!key->result && kind == KIND_EXEC_GONE) {
        if (exec)
            send_exec_ended(&key->image, word[1], exec);
        exec_gone(&key->image, word[1]);
    } else if (!key->result && kind == KIND_GRAPH_GONE) {
        graph_gone(&key->image, word[0]);
    }
    count_graph(task, call, ended.entry_ns, ended.duration_ns, capture_ns);
    return 0;
}

CALL_PROGRAMS(graph, graph_entry_body, graph_return_body)

enum node_word {
    NODE_CAPTURE, /* its number */
    NODE_KIND,
    NODE_COUNT,
};

INLINE u32 captured_node(const volatile struct probe_row* row)
{
    switch (row->kind) {
    case KIND_LAUNCH:
    case KIND_LAUNCH_LIST:
    case KIND_LAUNCH_LEGACY:
        return NODE_KERNEL;
    case KIND_HOST_FUNC:
        return NODE_HOST;
    case KIND_COPY:
    case KIND_COPY_BATCH:
    case KIND_COPY_BATCH_3D:
        return row->direction == DIRECTION_SET        ? NODE_SET
               : row->direction == DIRECTION_PREFETCH ? NODE_OTHER
                                                      : NODE_COPY;
    }
    return NODE_OTHER;
}

INLINE void count_direct_launch(struct pt_regs* ctx, struct task_struct* task)
{
    struct kept_call kept = {};
    if (!begin_call(ctx, task, &kept))
        return;
    kept.call.key.kind = KIND_LAUNCH;
    count_graph(task, &kept.call, 0, 0, 0);
}

/* Calls that become nodes while their stream is under capture. */
INLINE int node_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = row_number(ctx);
    if (!number || (!captures_begun && !count_launches) || !wanted_process(task))
        return 1;
    const volatile struct probe_row* row = probe_row(number);
    u32 node = captured_node(row);
    struct image image = image_of(task);
    struct arguments arguments;
    begin_arguments(ctx, row, &arguments);
    u64 stream = captures_begun ? stream_argument(row, read_argument(&arguments, row, ARG_STREAM)) : 0;
    u64 capture = capture_number(&image, stream);
    if (!capture_numbered(&image, capture)) {
        if (count_launches && node == NODE_KERNEL)
            count_direct_launch(ctx, task);
        return 1;
    }
    struct open_call* call = open_call_of(ctx, task);
    if (!call)
        return 1;
    call->word[NODE_CAPTURE] = capture;
    call->word[NODE_KIND] = node;
    call->word[NODE_COUNT] = row->kind == KIND_LAUNCH_LIST ? (u32)read_argument(&arguments, row, ARG_COUNT) : 1;
    return 0;
}

INLINE int node_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct thread_state* thread = thread_state(task);
    struct open_call* call = thread ? close_call(ctx, thread) : 0;
    if (!call || (s32)ctx->ax != 0)
        return 0;
    struct image image = image_of(task);
    struct capture* capture = capture_numbered(&image, call->word[NODE_CAPTURE]);
    if (capture)
        add_node(capture, call->word[NODE_KIND], call->word[NODE_COUNT]);
    return 0;
}

CALL_PROGRAMS(node, node_entry_body, node_return_body)

/* Streams join captures by events. */
INLINE int event_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = row_number(ctx);
    if (!number || !captures_begun || !wanted_process(task))
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
