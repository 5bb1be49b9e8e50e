/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_CUDALAUNCH_H
#define GPUSNOOP_CUDALAUNCH_H

#include <linux/types.h>

#include "process.h"

#define DEVICE_UNKNOWN 0xff
#define BUCKET_NONE 0xffff /* not measured, or not readable */

/* What a row of the table stands for. A field that the chosen view does not tell apart is 0. Shape and duration are
 * part of the key as histogram buckets: a kernel has few of each, so this is a sparse histogram in a single lookup.
 * Hashing it is a good part of what a call costs, so what few views ask for comes last and the map's key may end
 * before. */
struct launch_key {
    struct image image;
    __u64 func;    /* CUfunction, CUkernel or host stub; graph handle; host function */
    __u16 blocks;  /* bucket of the number of blocks in the grid */
    __u16 threads; /* bucket of the number of threads in a block */
    __u8 kind;     /* enum probe_kind: LAUNCH, GRAPH_LAUNCH or HOST_FUNC */
    __u8 layer;
    __u8 recorded; /* under stream capture: not executed */
    __u8 device;
    /* of calls with a result or a duration */
    __s32 result;
    __u16 duration; /* bucket of the latency or the gap, in the unit asked for */
    __u8 zero[2];
    /* of finer views */
    __u64 stream;
    __u64 caller; /* return address of the call (-U) */
    __u32 tid;
    __s32 stack; /* id in the stack map, negative for none */
    struct cgroups cgroups;
};

struct launch_shape {
    __u32 grid[3];
    __u32 block[3];
    __u64 smem; /* dynamic shared memory, bytes */
};

struct launch_stats {
    __u64 count;
    __u64 total_ns; /* latency */
    __u64 max_ns;
    __u64 last; /* jiffies of the last call, to tell which CPU's shape is the last one */
    struct launch_shape shape;
};

struct launch_event {
    __u32 type;
    __u32 tid;
    __u64 time_ns;     /* CLOCK_MONOTONIC at entry */
    __u64 duration_ns; /* latency; 0 when not measured */
    struct launch_key key;
    struct launch_shape shape;
    char comm[16]; /* of the thread */
};

#endif
