/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Records of calls: rows of one table for all tools, and one record per call for -e. */
#ifndef GPUSNOOP_CALL_H
#define GPUSNOOP_CALL_H

#include <linux/types.h>

#include "probe.h"
#include "process.h"

#define DEVICE_UNKNOWN 0xff
#define BUCKET_NONE 0xffff /* not measured, or not readable */

#define STACK_WITHOUT_FIRST 0x100000 /* flag in a stack's id: the map lacks the innermost address */

#define CALL_RECORDED 1     /* recorded by a stream capture, not executed */
#define CALL_ASYNCHRONOUS 2 /* the function returns before the work is done */
#define CALL_NOT_READY 4    /* a poll: the work is not done yet */
#define CALL_IN_PARTS 8     /* a report was made during the call, so its time is split between reports elsewhere */
#define CALL_UNTRACKED 16   /* an allocation that cannot be matched with its free: not part of live memory */
#define CALL_SUBJECT 32     /* call_key.subject has an ioctl's command, class or function */
#define CALL_VIRTUAL 64     /* its bytes are address space, not memory */
#define CALL_GENERATION 128 /* which of two generations a row in the table belongs to (base/call.bpf.h) */

#define FEW_BLOCKS 32 /* a grid with fewer blocks fills no GPU */

struct launch_form {
    __u16 blocks;  /* bucket of the number of blocks in the grid; if shapes are not reported, that of 1 or FEW_BLOCKS */
    __u16 threads; /* bucket of the number of threads in a block */
};

struct copy_form {
    __u16 size;     /* bucket of the copy's bytes */
    __u8 direction; /* enum direction */
    __u8 memory;    /* enum memory of source and destination: see copy_memory() */
};

struct wait_form {
    __u8 wait; /* enum wait */
    __u8 zero[3];
};

struct memory_form {
    __u16 size;   /* bucket of the allocation's bytes */
    __u8 holding; /* enum holding */
    __u8 zero;
};

struct graph_form {
    __u8 reason; /* result of an update: enum CUgraphExecUpdateResult, or UPDATE_REASON_UNKNOWN */
    __u8 zero[3];
};

struct driver_form {
    __u16 minor;
    __u8 node;    /* enum driver_node */
    __u8 outcome; /* enum driver_outcome: meaning of the result */
};

/* Key of a row. A field that the view does not group by is 0. Shape, size and duration are part of the key as histogram
 * buckets: a kernel has few of each, so this is a sparse histogram with a single lookup. Hashing the key is a good part
 * of a call's cost, so rarely used fields come last, and the map's keys may be shortened to omit them. */
struct call_key {
    struct image image;
    __u8 kind; /* enum probe_kind, or enum driver_entry; some values stand for several kinds of the probe table */
    __u8 layer;
    __u8 flags;
    __u8 device;
    union {
        struct launch_form launch;
        struct copy_form copy;
        struct wait_form wait;
        struct memory_form memory;
        struct graph_form graph;
        struct driver_form driver;
    };
    __u64 subject; /* depends on the kind: CUfunction, CUkernel or host stub; graph, or its number; host function;
                      event; number of a context; request of an ioctl, with its subject in the upper half */
    /* used if results, durations or functions are reported */
    __s32 result;
    __u16 duration; /* bucket of the measured value, in the unit of the view */
    __u16 function; /* number of the function's row in the probe table; 0: none */
    /* used by finer views */
    __u32 tid;
    __s32 stack; /* id in the stack map; negative: none */
    __u64 stream;
    __u64 caller; /* return address of the call (-U) */
    struct cgroups cgroups;
};

struct launch_shape {
    __u32 grid[3];
    __u32 block[3];
    __u64 smem; /* dynamic shared memory, bytes */
};

/* One copy, or `copies` copies of a batch beyond BATCH_MAX. */
struct copy {
    __u64 bytes; /* in total */
    __u64 destination;
    __u64 source;
    __u32 copies;
    __u8 sized;  /* bytes are known */
    __u8 begins; /* this is the first copy of its call */
    __u8 zero[2];
};

#define SMALL_COPY (64 << 10)

/* One allocation or free. */
struct memory_call {
    __u64 address; /* or handle */
    __u64 bytes;
    union {
        __u64 since_ns; /* free: when the memory was allocated, CLOCK_MONOTONIC; 0: unknown */
        __u64 age_ns;   /* free, in struct call_event: time since the allocation; 0: unknown */
        __u64 pitch_at; /* allocation in flight: address at which the call stores the pitch; 0: no pitch */
    };
    __u32 context; /* number of the context that owns the memory; 0: none, or unknown */
    __u8 sized;    /* bytes are known */
    __u8 zero[3];
};

/* One graph call. */
struct graph_call {
    __u64 graph; /* handle; 0: none */
    __u64 exec;
    __u32 kernels; /* known kernel nodes; for a launch, the kernels that it starts */
    __u32 copies;  /* copy and set nodes */
    __u32 others;
    __u32 unknown; /* the graph has further nodes, whose number is unknown */
};

/* Figures (counters) of a row, by their index in call_stats. The common ones are followed by those of the row's kind.
 * Rows are merged by adding their figures, unless merges_of() in src/rows/calls.cpp has another rule for a figure. */
enum call_figure {
    CALL_COUNT,
    CALL_TOTAL_NS, /* latency */
    CALL_MAX_NS,
    CALL_LAST, /* time of the last call, in jiffies or ns. The CPU with the latest one has the last shape or size */
    FIRST_KIND_FIGURE,
    CALL_FIGURES = FIRST_KIND_FIGURE + 4,
};

enum launch_figure {
    LAUNCH_SHAPE = FIRST_KIND_FIGURE, /* struct launch_shape, of the last launch */
};

enum copy_figure {
    COPY_BYTES = FIRST_KIND_FIGURE,
    COPY_SMALL,     /* copies of less than SMALL_COPY bytes */
    COPY_UNSIZED,   /* copies of unknown size */
    COPY_CONTINUED, /* copies of a batch after its first. CALL_COUNT - COPY_CONTINUED is the number of calls */
};

enum memory_figure {
    MEMORY_BYTES = FIRST_KIND_FIGURE,
    MEMORY_UNSIZED,    /* calls of unknown size */
    MEMORY_LAST_BYTES, /* bytes of the last call, in rows of failed calls */
};

enum graph_figure {
    GRAPH_KERNELS = FIRST_KIND_FIGURE, /* kernels started by launches */
    GRAPH_SETUP_NS,                    /* duration of captures, from start to end, and of instantiations */
    GRAPH_UNKNOWN,                     /* launches of graphs with unknown nodes */
};

struct call_stats {
    __u64 v[CALL_FIGURES];
};

/* Sums that one call adds to the figures of its kind: in the kernel, or in the front end if the call found no row. */
static inline __attribute__((always_inline)) void sums_of_copy(const struct copy* copy, __u64* v)
{
    v[COPY_BYTES] = copy->bytes;
    v[COPY_SMALL] = copy->sized && copy->bytes < SMALL_COPY ? copy->copies : 0;
    v[COPY_UNSIZED] = copy->sized ? 0 : copy->copies;
    v[COPY_CONTINUED] = (__u64)copy->copies - copy->begins;
}

static inline __attribute__((always_inline)) void sums_of_memory(const struct memory_call* memory, __u64* v)
{
    v[MEMORY_BYTES] = memory->bytes;
    v[MEMORY_UNSIZED] = memory->sized ? 0 : 1;
}

static inline __attribute__((always_inline)) void sums_of_graph(const struct call_key* key,
                                                                const struct graph_call* graph, __u64* v)
{
    if (key->kind != KIND_GRAPH_LAUNCH || key->result || key->flags & CALL_RECORDED)
        return;
    v[GRAPH_KERNELS] = graph->kernels;
    v[GRAPH_UNKNOWN] = graph->unknown ? 1 : 0;
}

/* A row of the per-CPU cache. It is free if key.image.pid is 0. */
struct front_row {
    struct call_stats stats; /* first, so that a pointer to the row also points to its stats */
    struct call_key key;
};

#define KEY_WORDS (sizeof(struct call_key) / 8)

/* A word of a key of which only the first `bytes`, a multiple of 4, are used; the other bytes read as 0. */
static inline __attribute__((always_inline)) __u64 key_word(const struct call_key* key, __u32 word, __u32 bytes)
{
    __u64 whole = ((const __u64*)key)[word];
    return bytes >= word * 8 + 8 ? whole : bytes > word * 8 ? (__u32)whole : 0;
}

/* Index of a key's row in a CPU's cache of 1 << bits rows. */
static inline __attribute__((always_inline)) __u32 front_place(const struct call_key* key, __u32 bytes, __u32 bits)
{
    __u64 hash = 0;
    for (__u32 i = 0; i < KEY_WORDS; i++)
        if (i * 8 < bytes)
            hash = (hash ^ key_word(key, i, bytes)) * 0x9e3779b97f4a7c15ULL;
    return (__u32)(hash >> 32) >> (32 - bits);
}

struct call_event {
    __u32 type; /* RECORD_CALL, or RECORD_SPILL if the table was full */
    __u32 tid;
    __u64 time_ns;     /* CLOCK_MONOTONIC at entry */
    __u64 duration_ns; /* latency; 0 if not measured */
    struct call_key key;
    union {
        struct launch_shape shape;
        struct copy copy;
        struct memory_call memory;
        struct graph_call graph;
    };
    char comm[16]; /* of the thread */
};

static inline __attribute__((always_inline)) __u8 copy_memory(__u8 source, __u8 destination)
{
    return (__u8)(source << 4 | destination);
}

/* Lines of -e: a ring of records, in an array that the front end maps. */

/* Line N is in element 1 + N modulo the capacity. */
struct line {
    __u64 published; /* N + 1 as soon as line N is complete */
    struct call_event event;
};

/* Positions in the ring, in element 0. */
struct line_positions {
    __u64 reserved; /* number of lines that have been given a place. Written by BPF programs */
    __u64 padding[15];
    __u64 consumed; /* number of lines that have been read, whose places are free. Written by the front end */
};

#endif
