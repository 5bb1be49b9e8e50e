/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Graphs and executable graphs. */
#ifndef GPUSNOOP_GRAPH_H
#define GPUSNOOP_GRAPH_H

#include <linux/types.h>

#include "probe.h"
#include "process.h"

struct graph_nodes {
    __u32 count[GRAPH_NODES]; /* number of nodes by enum graph_node, including the nodes of child graphs */
    __u32 unknown; /* nonzero if the graph also has nodes that are not counted here, because it was made before tracing
                      began */
};

/* A graph. The key of its table entry is its handle, which is valid until the graph is destroyed. */
struct graph {
    __u64 number;  /* our id, unique among all graphs of all processes; needed because handles are reused */
    __u64 born_ns; /* creation time, CLOCK_MONOTONIC; 0: before tracing began */
    struct graph_nodes nodes;
};

struct graph_exec {
    __u64 number; /* unique id, like graph.number */
    __u64 handle;
    __u64 born_ns;
    __u64 instantiate_ns; /* duration of the instantiation */
    __u64 graph;          /* handle of the graph from which this executable graph was instantiated; 0: unknown */
    struct graph_nodes nodes;
};

/* Value of graph_form.reason if the result of a graph update could not be read. */
#define UPDATE_REASON_UNKNOWN 0xff

/* Sent when an executable graph is destroyed, because the front end has yet to report its last calls. */
struct exec_record {
    __u32 type; /* RECORD_EXEC_ENDED */
    __u32 zero;
    struct image image;
    struct graph_exec exec;
};

#endif
