/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Graphs and executable graphs: their nodes, and the programs that track them. */
#ifndef GPUSNOOP_GRAPH_BPF_H
#define GPUSNOOP_GRAPH_BPF_H

#include "base/api_call.bpf.h"
#include "base/share.bpf.h"
#include "kinds/state.bpf.h"

/* Executable graphs, and the nodes of graphs. Both are derived from the calls that build graphs. */

HASH_MAP(graphs, 65536, struct handle_number, struct graph);

HASH_MAP(execs, 65536, struct handle_number, struct graph_exec);

__u64 graphs_made = 0; /* number of graphs and executable graphs so far, and the last id assigned */

INLINE struct graph* graph_of(const struct image* image, u64 handle)
{
    struct handle_number key = {.image = *image, .number = handle};
    return bpf_map_lookup_elem(&graphs, &key);
}

INLINE void graph_made(const struct image* image, u64 handle, const struct graph_nodes* nodes, u64 now)
{
    struct handle_number key = {.image = *image, .number = handle};
    struct graph new = {.number = __sync_fetch_and_add(&graphs_made, 1) + 1, .born_ns = now, .nodes = *nodes};
    if (PUT_SHARED(&graphs, SHARED_GRAPHS, &key, &new))
        lose(LOSS_STATE, 1);
}

/* The handle of a destroyed graph may be reused before the destroying call returns. So during this call, the graph's
 * entry is stored under a key that is made from the graph's id and differs from all handles. */
INLINE struct handle_number destroying_key(const struct image* image, u64 number)
{
    return (struct handle_number){.image = *image, .number = number | 1ull << 63};
}

INLINE void begin_destroy(void* map, const struct image* image, u64 handle, u64 number, const void* value)
{
    struct handle_number key = {.image = *image, .number = handle}, destroying = destroying_key(image, number);
    bpf_map_update_elem(map, &destroying, value, BPF_ANY);
    bpf_map_delete_elem(map, &key);
}

/* Called when a call that destroys a graph returns. If the call succeeded, deletes the graph's entry. If it failed,
 * moves the entry back to the graph's handle. */
INLINE void finish_destroy(void* map, u32 table, const struct image* image, u64 handle, u64 number, bool destroyed)
{
    struct handle_number destroying = destroying_key(image, number);
    const void* value = number ? bpf_map_lookup_elem(map, &destroying) : 0;
    if (!value)
        return;
    if (destroyed) {
        DELETE_SHARED(map, table, &destroying);
        return;
    }
    struct handle_number key = {.image = *image, .number = handle};
    bpf_map_update_elem(map, &key, value, BPF_NOEXIST);
    bpf_map_delete_elem(map, &destroying);
}

INLINE struct graph* graph_being_destroyed(const struct image* image, u64 number)
{
    struct handle_number destroying = destroying_key(image, number);
    return number ? bpf_map_lookup_elem(&graphs, &destroying) : 0;
}

INLINE void add_nodes(struct graph_nodes* to, const struct graph_nodes* nodes)
{
    for (int i = 0; i < GRAPH_NODES; i++)
        __sync_fetch_and_add(&to->count[i], nodes->count[i]);
    if (nodes->unknown)
        to->unknown = 1;
}

/* Returns the nodes of a graph. They are unknown if the graph was made before tracing began. */
INLINE struct graph_nodes nodes_of_graph(const struct image* image, u64 handle)
{
    struct graph* graph = graph_of(image, handle);
    if (graph)
        return graph->nodes;
    return (struct graph_nodes){.unknown = 1};
}

/* Kind of node for each enum CUgraphNodeType. */
static const volatile u8 node_of_type[16] = {NODE_KERNEL, NODE_COPY, NODE_SET, NODE_HOST};
#define NODE_TYPE_GRAPH 4

INLINE void graph_node_added(const struct image* image, u64 handle, u32 node, u64 child)
{
    struct graph* graph = graph_of(image, handle);
    u64 place = opaque(node);
    if (!graph)
        return;
    if (child) {
        struct graph_nodes nodes = nodes_of_graph(image, child);
        add_nodes(&graph->nodes, &nodes);
    } else if (place < GRAPH_NODES) {
        __sync_fetch_and_add(&graph->nodes.count[place], 1);
    }
}

INLINE struct graph_exec* exec_of(const struct image* image, u64 handle)
{
    struct handle_number key = {.image = *image, .number = handle};
    return bpf_map_lookup_elem(&execs, &key);
}

OWN_FRAME struct graph_exec* new_exec(const struct image* image, u64 handle, struct graph_exec* new)
{
    struct handle_number key = {.image = *image, .number = handle};
    new->handle = handle;
    new->number = __sync_fetch_and_add(&graphs_made, 1) + 1;
    if (PUT_SHARED(&execs, SHARED_EXECS, &key, new))
        lose(LOSS_STATE, 1);
    return bpf_map_lookup_elem(&execs, &key);
}

INLINE struct graph_exec* exec_made(const struct image* image, u64 handle, u64 graph, u64 now, u64 took_ns)
{
    struct graph_exec new = {.born_ns = now, .instantiate_ns = took_ns, .graph = graph};
    new.nodes = nodes_of_graph(image, graph);
    return new_exec(image, handle, &new);
}

/* Returns an executable graph. If it was instantiated before tracing began, starts to track it. */
INLINE struct graph_exec* track_exec(const struct image* image, u64 handle)
{
    struct graph_exec* exec = exec_of(image, handle);
    if (exec)
        return exec;
    struct graph_exec new = {.nodes = {.unknown = 1}};
    introduce(image, cgroups_of(untrusted(bpf_get_current_task_btf())));
    return new_exec(image, handle, &new);
}

/* Returns the executable graph with this id, or NULL if it no longer exists. While a call destroys the graph, its
 * handle may already belong to another graph, so its entry is stored under destroying_key(). */
INLINE struct graph_exec* exec_numbered(const struct image* image, u64 handle, u64 number)
{
    struct graph_exec* exec = exec_of(image, handle);
    if (exec && exec->number == number)
        return exec;
    struct handle_number destroying = destroying_key(image, number);
    return bpf_map_lookup_elem(&execs, &destroying);
}

/* Arguments of a graph call. */
struct graph_words {
    u64 graph;
    u64 exec;
    u64 out;
    u64 child;
    u64 stream;
    u64 node_type;
};

INLINE void read_graph_words(struct arguments* arguments, const volatile struct probe_row* row,
                             struct graph_words* words)
{
    words->graph = read_argument(arguments, row, ARG_GRAPH);
    words->exec = read_argument(arguments, row, ARG_FUNC);
    words->out = read_argument(arguments, row, ARG_OUT);
    words->child = read_argument(arguments, row, ARG_CHILD);
    words->stream = stream_argument(row, read_argument(arguments, row, ARG_STREAM));
    words->node_type =
        has_argument(row, ARG_NODE_TYPE) ? read_argument(arguments, row, ARG_NODE_TYPE) : NODE_TYPE_GRAPH;
}

/* True for calls that make graphs, executable graphs or captures. Before such a call is tracked, its process must be
 * sent to the front end (introduce()), for the reason given at capture_begin(). */
INLINE bool makes_graphs(u32 kind)
{
    return kind == KIND_CAPTURE_BEGIN || kind == KIND_CAPTURE_END || kind == KIND_GRAPH_NEW ||
           kind == KIND_GRAPH_INSTANTIATE;
}

/* Handles the end of a capture, which becomes a graph or extends one. Stores the graph's handle in words->graph.
 * Returns the duration of the capture, or 0 if its start was not seen. */
INLINE u64 follow_capture_end(const struct image* image, struct graph_words* words, s32 result, u64 now)
{
    struct capture ended = {.nodes = {.unknown = 1}};
    bool known = !is_still_capturing(result) && capture_end(image, words->stream, &ended);
    if (!result) {
        words->graph = ended.graph ?: read_word(words->out);
        /* If ended.graph is set, the capture has extended this graph. The graph has no entry if it was made before
         * tracing began. */
        struct graph* graph = ended.graph ? graph_of(image, words->graph) : 0;
        if (graph)
            add_nodes(&graph->nodes, &ended.nodes);
        else if (!ended.graph)
            graph_made(image, words->graph, &ended.nodes, now);
    }
    return known ? now - ended.begun_ns : 0;
}

INLINE u32 node_kind(const volatile struct probe_row* row, u64 type)
{
    if (row->holding == HOLDING_GRAPH)
        return NODE_OTHER;
    return row->node != NODE_UNSPECIFIED ? row->node : node_of_type[type & 15];
}

/* Called before a call that destroys a graph. Stores the graph's id in words->child, which is free for this purpose,
 * because such a call has no child argument. */
INLINE void graph_destroy_begins(const struct image* image, u32 kind, struct graph_words* words)
{
    struct graph_exec* exec = kind == KIND_EXEC_DESTROY ? exec_of(image, words->exec) : 0;
    struct graph* graph = kind == KIND_GRAPH_DESTROY ? graph_of(image, words->graph) : 0;
    if (exec)
        begin_destroy(&execs, image, words->exec, exec->number, exec);
    if (graph)
        begin_destroy(&graphs, image, words->graph, graph->number, graph);
    if (kind == KIND_GRAPH_DESTROY)
        words->child = graph ? graph->number : 0;
}

/* Updates our tables of graphs and captures after a successful call. `number` is the id of the executable graph in
 * words->exec. */
INLINE void follow_graph_call(const struct image* image, const volatile struct probe_row* row,
                              struct graph_words* words, u64 number, u64 now, u64 took_ns)
{
    struct graph_exec* exec;
    struct graph_nodes nodes = {};
    switch (row->kind) {
    case KIND_CAPTURE_BEGIN:
        capture_begin(image, words->stream, words->graph);
        break;
    case KIND_GRAPH_NEW:
        if (words->graph)
            nodes = nodes_of_graph(image, words->graph);
        words->graph = read_word(words->out);
        graph_made(image, words->graph, &nodes, now);
        break;
    case KIND_ALLOC:
    case KIND_FREE:
    case KIND_GRAPH_NODE:
        graph_node_added(image, words->graph, node_kind(row, words->node_type),
                         words->node_type == NODE_TYPE_GRAPH ? words->child : 0);
        break;
    case KIND_GRAPH_INSTANTIATE:
        words->exec = read_word(words->out);
        exec_made(image, words->exec, words->graph, now, took_ns);
        break;
    case KIND_GRAPH_UPDATE:
        exec = exec_numbered(image, words->exec, number);
        if (exec)
            exec->nodes = nodes_of_graph(image, words->graph);
        break;
    }
}

/* Called after a call that destroys a graph. */
INLINE void graph_destroy_ends(const struct image* image, u32 kind, const struct graph_words* words, u64 number,
                               bool destroyed)
{
    if (kind == KIND_EXEC_DESTROY)
        finish_destroy(&execs, SHARED_EXECS, image, words->exec, number, destroyed);
    else if (kind == KIND_GRAPH_DESTROY)
        finish_destroy(&graphs, SHARED_GRAPHS, image, words->graph, words->child, destroyed);
}

/* Programs that track graphs and captures for tools that count something else. */

INLINE void fill_from_nodes(struct call* call, const struct graph_nodes* nodes)
{
    call->graph.kernels = nodes->count[NODE_KERNEL];
    call->graph.copies = nodes->count[NODE_COPY] + nodes->count[NODE_SET];
    call->graph.others = nodes->count[NODE_HOST] + nodes->count[NODE_OTHER];
    call->graph.unknown = nodes->unknown;
}

INLINE void add_graph_to(struct call_stats* stats, const struct call* call)
{
    u64 sums[CALL_FIGURES] = {};
    sums_of_graph(&call->key, &call->graph, sums);
    add_kind_sums(stats, sums);
}

const volatile bool count_graphs = false; /* also count captures and instantiations, which are tracked in any case */

/* Counts a call. The record, which contains the row's key, is built in the words of the open call, which are no longer
 * needed. If a caller passed a record on its own stack, kernels before 6.2 would reject the record's key as a map
 * key. */
OWN_FRAME int count_followed(struct pt_regs* ctx, struct open_call* open, u32 number)
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

/* State of a graph call from entry to return. It is stored in open_call.word, after the word that holds the row's
 * number. */
struct followed_graph {
    struct graph_words words;
    u64 exec; /* id of the executable graph */
};

_Static_assert(sizeof(struct followed_graph) <= (OPEN_CALL_WORDS - 1) * 8,
               "struct followed_graph must fit into an open call");

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
    graph_destroy_begins(&image, at.row->kind, &graph.words);
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
    graph_destroy_ends(&image, at.row->kind, &graph.words, graph.exec, !result);
    if (count_graphs && (at.row->kind == KIND_CAPTURE_END || at.row->kind == KIND_GRAPH_INSTANTIATE) &&
        is_traced(at.task))
        count_followed(ctx, at.call, number);
    return 0;
}

CALL_PROGRAMS(follow, follow_entry_body, follow_return_body)
ENTRY_PROGRAM(event_entry, event_body)

#endif
