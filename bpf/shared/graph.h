/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Graphs and executable graphs. */
#ifndef GPUSNOOP_GRAPH_H
#define GPUSNOOP_GRAPH_H

#include <linux/types.h>

#include "probe.h"
#include "process.h"

struct graph_nodes {
    __u32 count[GRAPH_NODES]; /* by enum graph_node, including nodes of child graphs */
    __u32 unknown;            /* the graph has further nodes, because it is older than tracing */
};

/* A graph. It is found by its handle as long as the handle is valid. */
struct graph {
    __u64 number;  /* unique among all graphs of all processes, because handles are reused */
    __u64 born_ns; /* CLOCK_MONOTONIC; 0: before tracing began */
    struct graph_nodes nodes;
};

struct graph_exec {
    __u64 number; /* unique, like the number of a graph */
    __u64 handle;
    __u64 born_ns;
    __u64 instantiate_ns; /* duration of the instantiation */
    __u64 graph;          /* handle of the graph that it was made from; 0: unknown */
    struct graph_nodes nodes;
};

/* Unknown result of an update, in addition to the values of enum CUgraphExecUpdateResult. */
#define UPDATE_REASON_UNKNOWN 0xff

/* Sent when an executable graph is destroyed, because its last calls still have to be reported. */
struct exec_record {
    __u32 type; /* RECORD_EXEC_ENDED */
    __u32 zero;
    struct image image;
    struct graph_exec exec;
};

#endif
