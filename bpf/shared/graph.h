/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Graphs, and what executes them. */
#ifndef GPUSNOOP_GRAPH_H
#define GPUSNOOP_GRAPH_H

#include <linux/types.h>

#include "probe.h"
#include "process.h"

struct graph_nodes {
    __u32 count[GRAPH_NODES]; /* by enum graph_node; those of child graphs among them */
    __u32 unknown;            /* there are others: the graph was there before tracing began */
};

/* By its handle, as long as that stands for this one. */
struct graph {
    __u64 number;  /* no other graph of any process has it: handles are used again */
    __u64 born_ns; /* CLOCK_MONOTONIC; 0: before tracing began */
    struct graph_nodes nodes;
};

struct graph_exec {
    __u64 number; /* as of graphs */
    __u64 handle;
    __u64 born_ns;
    __u64 instantiate_ns; /* how long that took */
    __u64 graph;          /* handle of what it was made of; 0 unknown */
    struct graph_nodes nodes;
};

/* How an update ended: enum CUgraphExecUpdateResult; here one that nobody told. */
#define UPDATE_REASON_UNKNOWN 0xff

/* What is known of it goes with it; its last calls are still to be shown. */
struct exec_record {
    __u32 type; /* RECORD_EXEC_ENDED */
    __u32 zero;
    struct image image;
    struct graph_exec exec;
};

#endif
