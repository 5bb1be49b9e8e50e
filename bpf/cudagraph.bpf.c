/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Life cycle of graphs: capture or construction, instantiation, launches, updates, destruction. */
#include "base/api_call.bpf.h"
#include "kinds/context.bpf.h"
#include "kinds/graph.bpf.h"
#include "shared/graph.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 often_launched = 0;    /* number of the row whose launches the program `often` handles */
const volatile bool count_launches = false; /* if true, kernel launches outside of graphs are also counted */
const volatile bool measure_nodes = false;  /* if true, the histogram has nodes per launched graph, not durations */

/* The current task is not passed as an argument, because callers would then exceed the 512 bytes of stack that kernels
 * before 6.13 allow. */
OWN_FRAME int count_graph(struct call* call, u64 entry_ns, u64 duration_ns, u64 setup_ns)
{
    if (!call)
        return 0;
    struct call_stats* stats = count_call(bpf_get_current_task_btf(), call, 1, entry_ns, duration_ns);
    if (!stats)
        return 0;
    add_graph_to(stats, call);
    add(&stats->v[GRAPH_SETUP_NS], setup_ns);
    if (call->key.kind == KIND_GRAPH_UPDATE)
        stats->v[CALL_LAST] = bpf_ktime_get_ns();
    return 0;
}

/* A graph launched under capture becomes a child of the graph that is being captured. */
INLINE void add_child(const struct kept_call* kept)
{
    struct capture* capture = capture_numbered(&kept->call.key.image, kept->capture);
    struct graph_exec* exec = exec_of(&kept->call.key.image, kept->call.graph.exec);
    if (capture && exec)
        add_nodes(&capture->nodes, &exec->nodes);
}

/* Graph launches. */
INLINE int launch_begins(struct pt_regs* ctx, bool often)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct kept_call kept = {};
    const volatile struct probe_row* row =
        begin_sampled_call(ctx, task, SAMPLED_NONE, often ? often_launched : 0, &kept);
    if (!row)
        return 1;
    struct call_key* key = &kept.call.key;
    u64 handle = register_argument(ctx, row, ARG_FUNC);
    struct graph_exec* exec = track_exec(&key->image, handle);
    key->kind = KIND_GRAPH_LAUNCH;
    kept.call.graph.exec = handle;
    if (exec) {
        key->subject = exec->number;
        kept.call.graph.graph = exec->graph;
        fill_from_nodes(&kept.call, &exec->nodes);
        if (measure_nodes && !exec->nodes.unknown)
            key->duration =
                histogram_bucket((u64)kept.call.graph.kernels + kept.call.graph.copies + kept.call.graph.others);
    } else {
        kept.call.graph.unknown = 1;
    }
    if (per_stream || captures_open) {
        u64 stream = stream_argument(row, register_argument(ctx, row, ARG_STREAM));
        if (per_stream)
            key->stream = stream;
        u64 number = capture_number(&key->image, stream);
        if (capture_numbered(&key->image, number)) {
            key->flags |= CALL_RECORDED;
            kept.capture = number;
            if (!need_return)
                add_child(&kept); /* without a return probe, failed launches are not detected, so they are added, too */
        }
    }
    u64 now = measure_latency || emit_events ? bpf_ktime_get_ns() : 0;
    if (need_return)
        return keep_call(ctx, task, &kept, now) ? 0 : 1;
    count_graph(&kept.call, now, 0, 0);
    return 1;
}

INLINE int launch_returns(struct pt_regs* ctx, bool often)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct ended_call ended;
    if (!end_call(ctx, task, &ended))
        return 0;
    const struct call_key* key = &ended.kept->call.key;
    if (key->flags & CALL_RECORDED && !key->result)
        add_child(ended.kept);
    count_graph(&ended.kept->call, ended.entry_ns, ended.duration_ns, 0);
    return 0;
}

CALL_PROGRAMS(launch, launch_begins, launch_returns, false)
CALL_PROGRAMS(often, launch_begins, launch_returns, true)

/* All graph calls except launches. */
INLINE void keep_words(struct kept_call* kept, const struct graph_words* words)
{
    u64* word = kept->call.word;
    word[0] = words->graph;
    word[1] = words->exec;
    word[2] = words->out;
    word[3] = words->child;
    kept->stream = words->stream;
    kept->node_type = words->node_type;
}

INLINE void kept_words(struct kept_call* kept, struct graph_words* words)
{
    u64* word = kept->call.word;
    words->graph = word[0];
    words->exec = word[1];
    words->out = word[2];
    words->child = word[3];
    words->stream = kept->stream;
    words->node_type = kept->node_type;
    __builtin_memset(word, 0, sizeof(kept->call.word));
}

OWN_FRAME int graph_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct arguments arguments;
    struct graph_words words;
    struct kept_call kept = {};
    const volatile struct probe_row* row = begin_call(ctx, task, &kept);
    if (!row)
        return 1;
    struct call_key* key = &kept.call.key;
    begin_arguments(ctx, row, &arguments);
    read_graph_words(&arguments, row, &words);
    key->kind = row->kind == KIND_ALLOC || row->kind == KIND_FREE ? KIND_GRAPH_NODE : row->kind;
    if (per_stream)
        key->stream = words.stream;
    if (arguments.error)
        lose(LOSS_ARGUMENTS, 1);
    struct graph_exec* exec = words.exec ? exec_of(&key->image, words.exec) : 0;
    if (exec)
        key->subject = exec->number;
    if (!only_failed) /* with only_failed, end_call() skips successful calls, so graph_destroy_ends() would not run */
        graph_destroy_begins(&key->image, key->kind, &words);
    keep_words(&kept, &words);
    if (keep_call(ctx, task, &kept, bpf_ktime_get_ns()))
        return 0;
    if (!only_failed)
        graph_destroy_ends(&key->image, key->kind, &words, key->subject, false);
    return 1;
}

INLINE void send_exec_ended(const struct image* image, const struct graph_exec* exec)
{
    struct exec_record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        lose(LOSS_STATE, 1);
        return;
    }
    record->type = RECORD_EXEC_ENDED;
    record->zero = 0;
    record->image = *image;
    record->exec = *exec;
    bpf_ringbuf_submit(record, ring_flags(sizeof(*record)));
}

/* Fills in the call's graph or executable graph, and its nodes. */
INLINE struct graph_exec* describe(struct call* call, const struct graph_words* words)
{
    const struct image* image = &call->key.image;
    struct graph_exec* exec = words->exec ? exec_numbered(image, words->exec, call->key.subject) : 0;
    struct graph* graph = exec                                   ? 0
                          : call->key.kind == KIND_GRAPH_DESTROY ? graph_being_destroyed(image, words->child)
                                                                 : graph_of(image, words->graph);
    call->graph.exec = words->exec;
    call->graph.graph = words->graph;
    if (exec) {
        call->graph.graph = words->graph ?: exec->graph;
        fill_from_nodes(call, &exec->nodes);
    } else if (graph) {
        fill_from_nodes(call, &graph->nodes);
    } else {
        call->graph.unknown = 1;
    }
    return exec;
}

/* Handles the end of a capture. Returns the duration of the capture, in ns. */
OWN_FRAME u64 capture_ended(const struct call_key* key, struct graph_words* words, u64 now)
{
    return key && words ? follow_capture_end(&key->image, words, key->result, now) : 0;
}

OWN_FRAME int follow_ended(const struct ended_call* ended, struct graph_words* words, u64 now, u64 took_ns)
{
    if (!ended || !words)
        return 0;
    const struct call_key* key = &ended->kept->call.key;
    follow_graph_call(&key->image, probe_row(ended->kept->row), words, key->subject, now, took_ns);
    return 0;
}

OWN_FRAME int graph_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct ended_call ended;
    struct graph_words words;
    if (!end_call(ctx, task, &ended))
        return 0;
    struct call* call = &ended.kept->call;
    struct call_key* key = &call->key;
    kept_words(ended.kept, &words);
    u64 now = bpf_ktime_get_ns();
    u64 took_ns = now > ended.entry_ns ? now - ended.entry_ns : 0;
    u32 kind = key->kind;
    if (makes_graphs(kind))
        introduce(&key->image, cgroups_of(untrusted(task)));
    u64 setup_ns = 0;
    if (kind == KIND_CAPTURE_END)
        setup_ns = capture_ended(key, &words, now);
    else if (!key->result)
        follow_ended(&ended, &words, now, took_ns);
    if (kind == KIND_GRAPH_INSTANTIATE) {
        setup_ns = took_ns;
        struct graph_exec* made = key->result ? 0 : exec_of(&key->image, words.exec);
        if (made)
            key->subject = made->number;
    }
    if (kind == KIND_GRAPH_UPDATE) {
        u32 reason;
        if (bpf_probe_read_user(&reason, sizeof(reason), (void*)words.out))
            reason = UPDATE_REASON_UNKNOWN;
        key->graph.reason = reason;
    }
    struct graph_exec* exec = describe(call, &words);
    if (!key->result && kind == KIND_EXEC_DESTROY && exec)
        send_exec_ended(&key->image, exec);
    graph_destroy_ends(&key->image, kind, &words, key->subject, !key->result);
    count_graph(call, ended.entry_ns, ended.duration_ns, setup_ns);
    return 0;
}

CALL_PROGRAMS(graph, graph_entry_body, graph_return_body)

enum node_word {
    NODE_CAPTURE, /* id of the capture */
    NODE_KIND,
    NODE_COUNT,
};

INLINE u32 captured_node(const volatile struct probe_row* row)
{
    switch (row->kind) {
    case KIND_LAUNCH:
    case KIND_LAUNCH_LIST:
    case KIND_LAUNCH_LEGACY:
    case KIND_LAUNCH_ITEMS:
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
    count_graph(&kept.call, 0, 0, 0);
}

/* Calls that become graph nodes if their stream is under capture. */
INLINE int node_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = captures_open || count_launches ? traced_row_of_process(ctx, task) : 0;
    if (!number)
        return 1;
    const volatile struct probe_row* row = probe_row(number);
    u32 node = captured_node(row);
    struct image image = image_of(task);
    struct arguments arguments;
    begin_arguments(ctx, row, &arguments);
    u64 stream = captures_open ? stream_argument(row, read_argument(&arguments, row, ARG_STREAM)) : 0;
    u64 capture = capture_number(&image, stream);
    if (!capture_numbered(&image, capture)) {
        if (count_launches && node == NODE_KERNEL)
            count_direct_launch(ctx, task);
        return 1;
    }
    struct open_call* call = open_call_of(ctx, task, PART_COUNT);
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
    struct open_call* call = thread ? close_call(ctx, thread, PART_COUNT) : 0;
    if (!call || (s32)PT_REGS_RC(ctx) != 0)
        return 0;
    struct image image = image_of(task);
    struct capture* capture = capture_numbered(&image, call->word[NODE_CAPTURE]);
    if (capture)
        add_node(capture, call->word[NODE_KIND], call->word[NODE_COUNT]);
    return 0;
}

CALL_PROGRAMS(node, node_entry_body, node_return_body)
