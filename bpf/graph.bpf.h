/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What graphs consist of, from the calls that make them, and what executes them. */
#ifndef GPUSNOOP_GRAPH_BPF_H
#define GPUSNOOP_GRAPH_BPF_H

#include "stream.bpf.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct handle_number);
    __type(value, struct graph);
} graphs SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct handle_number);
    __type(value, struct graph_exec);
} execs SEC(".maps");

__u64 graphs_made = 0; /* and execs */

INLINE struct graph* graph_of(const struct image* image, u64 handle)
{
    struct handle_number key = {.image = *image, .number = handle};
    return bpf_map_lookup_elem(&graphs, &key);
}

INLINE void graph_made(const struct image* image, u64 handle, const struct graph_nodes* nodes, u64 now)
{
    struct handle_number key = {.image = *image, .number = handle};
    struct graph new = {.number = __sync_fetch_and_add(&graphs_made, 1) + 1, .born_ns = now, .nodes = *nodes};
    if (bpf_map_update_elem(&graphs, &key, &new, BPF_ANY))
        lose(LOSS_STATE, 1);
}

INLINE void graph_gone(const struct image* image, u64 handle)
{
    struct handle_number key = {.image = *image, .number = handle};
    bpf_map_delete_elem(&graphs, &key);
}

INLINE void add_nodes(struct graph_nodes* to, const struct graph_nodes* nodes)
{
    for (int i = 0; i < GRAPH_NODES; i++)
        __sync_fetch_and_add(&to->of[i], nodes->of[i]);
    if (nodes->unknown)
        to->unknown = 1;
}

/* Of a graph that was made before tracing began only that is known. */
INLINE struct graph_nodes nodes_of_graph(const struct image* image, u64 handle)
{
    struct graph* graph = graph_of(image, handle);
    if (graph)
        return graph->nodes;
    return (struct graph_nodes){.unknown = 1};
}

/* enum CUgraphNodeType */
static const volatile u8 node_of_type[16] = {NODE_KERNEL, NODE_COPY, NODE_SET, NODE_HOST};
#define NODE_TYPE_GRAPH 4

INLINE void graph_node_added(const struct image* image, u64 handle, u32 node, u64 child)
{
    struct graph* graph = graph_of(image, handle);
    if (!graph)
        return;
    if (child) {
        struct graph_nodes nodes = nodes_of_graph(image, child);
        add_nodes(&graph->nodes, &nodes);
    } else if (node < GRAPH_NODES) {
        __sync_fetch_and_add(&graph->nodes.of[node], 1);
    }
}

INLINE struct graph_exec* exec_of(const struct image* image, u64 handle)
{
    struct handle_number key = {.image = *image, .number = handle};
    return bpf_map_lookup_elem(&execs, &key);
}

static __attribute__((noinline)) struct graph_exec* new_exec(const struct image* image, u64 handle,
                                                             const struct graph_exec* like)
{
    struct handle_number key = {.image = *image, .number = handle};
    struct graph_exec new = *like;
    new.number = __sync_fetch_and_add(&graphs_made, 1) + 1;
    if (bpf_map_update_elem(&execs, &key, &new, BPF_ANY))
        lose(LOSS_STATE, 1);
    return bpf_map_lookup_elem(&execs, &key);
}

INLINE struct graph_exec* exec_made(const struct image* image, u64 handle, u64 graph, u64 now, u64 took_ns)
{
    struct graph_exec new = {.born_ns = now, .instantiate_ns = took_ns, .graph = graph};
    new.nodes = nodes_of_graph(image, graph);
    return new_exec(image, handle, &new);
}

/* Instantiated before tracing began. */
INLINE struct graph_exec* exec_met(const struct image* image, u64 handle)
{
    struct graph_exec* exec = exec_of(image, handle);
    if (exec)
        return exec;
    struct graph_exec new = {.nodes = {.unknown = 1}};
    return new_exec(image, handle, &new);
}

INLINE void exec_gone(const struct image* image, u64 handle)
{
    struct handle_number key = {.image = *image, .number = handle};
    bpf_map_delete_elem(&execs, &key);
}

#endif
