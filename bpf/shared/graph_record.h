/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_GRAPH_RECORD_H
#define GPUSNOOP_GRAPH_RECORD_H

#include "graph.h"

/* What is known of it goes with it; its last calls are still to be shown. */
struct exec_record {
    __u32 type; /* RECORD_EXEC_ENDED */
    __u32 zero;
    struct image image;
    struct graph_exec exec;
};

#endif
