/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Formats in which BPF programs record calls: a row of a table that counts similar calls and, for -e, one record per
 * call. */
#ifndef GPUSNOOP_CALL_H
#define GPUSNOOP_CALL_H

#include <linux/types.h>

#include "probe.h"
#include "process.h"

#define DEVICE_UNKNOWN 0xff
#define BUCKET_NONE 0xffff /* the value was not measured, or is unreadable */

#define STACK_WITHOUT_FIRST 0x100000 /* flag in a stack's id: the stack is stored without its innermost address */

#define CALL_RECORDED 1     /* the call was recorded by a stream capture, not executed */
#define CALL_ASYNCHRONOUS 2 /* the function returns before the work is done */
#define CALL_NOT_READY 4    /* a poll: the work is not done yet */
#define CALL_IN_PARTS 8     /* a report was printed during the call, so its time is split among reports */
#define CALL_UNTRACKED 16   /* the allocation cannot be matched with its free, so it is not counted as live memory */
#define CALL_SUBJECT 32 /* the upper half of call_key.subject is the control command, class or function of an ioctl */
#define CALL_VIRTUAL 64 /* the call's bytes are address space, not memory */
#define CALL_GENERATION 128 /* the row belongs to the second of two generations (base/call.bpf.h) */

#define FEW_BLOCKS 32 /* a grid with fewer blocks cannot fill a GPU */

struct launch_form {
    /* Histogram bucket of the number of blocks in the grid. With distinguish_few_blocks, only two buckets are used: the
     * bucket of the value 1 for grids of fewer than FEW_BLOCKS blocks, and the bucket of the value FEW_BLOCKS for all
     * other grids. */
    __u16 blocks;
    __u16 threads; /* histogram bucket of the number of threads in a block */
};

struct copy_form {
    __u16 size;     /* histogram bucket of the copy's size in bytes */
    __u8 direction; /* enum direction */
    __u8 memory;    /* enum memory of source and destination: see copy_memory() */
};

struct wait_form {
    __u8 wait; /* enum wait */
    __u8 zero[3];
};

struct memory_form {
    __u16 size;   /* histogram bucket of the allocation's size in bytes */
    __u8 holding; /* enum holding */
    __u8 zero;
};

struct graph_form {
    __u8 reason; /* result of a graph update: enum CUgraphExecUpdateResult, or UPDATE_REASON_UNKNOWN */
    __u8 zero[3];
};

struct driver_form {
    __u16 minor;
    __u8 node;    /* enum driver_node */
    __u8 outcome; /* enum driver_outcome: meaning of the result */
};

/* Key of a row in the table `calls`. Fields by which the tool does not group calls are 0. The key contains the
 * histogram buckets of shape, size and duration, so counting a call in its histograms needs only one lookup. A bucket
 * without calls has no row, and the launches of one GPU kernel usually fall into only a few buckets. Hashing the key is
 * a large part of the cost of tracing a call. So rarely used fields are at the end, and the front end makes the map's
 * keys shorter if these fields are not needed. */
struct call_key {
    struct image image;
    __u8 kind; /* enum probe_kind or enum driver_entry; similar kinds of the probe table are counted under one kind,
                  such as KIND_LAUNCH */
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
    __u64 subject; /* object of the call. Kernel launch: CUfunction, CUkernel or host stub. Graph call: handle of the
                      executable graph, or our id for it. Host function launch: the function. Wait: the event. Memory
                      call: our id for the context. ioctl: the request; for the upper half, see CALL_SUBJECT */
    /* fields that are used if results, durations or functions are reported */
    __s32 result;
    __u16 duration; /* histogram bucket of the duration, rate or lifetime, in the unit that the tool uses */
    __u16 function; /* number of the function's row in the probe table; 0: none */
    /* fields that only detailed views use */
    __u32 tid;
    __s32 stack; /* id of the stack; negative: none */
    __u64 stream;
    __u64 caller; /* return address of the call (-U) */
    struct cgroups cgroups;
};

struct launch_shape {
    __u32 grid[3];
    __u32 block[3];
    __u64 smem; /* dynamic shared memory, bytes */
};

/* One copy, or several copies of a batch that are counted together (record_batched()). */
struct copy {
    __u64 bytes; /* total size */
    __u64 destination;
    __u64 source;
    __u32 copies;
    __u8 sized;  /* nonzero if `bytes` is known */
    __u8 begins; /* nonzero for the first copy of its call */
    __u8 zero[2];
};

#define SMALL_COPY (64 << 10)

/* One allocation or free. */
struct memory_call {
    __u64 address; /* address or handle */
    __u64 bytes;
    union {
        __u64 since_ns; /* free: time of the allocation, CLOCK_MONOTONIC; 0: unknown */
        __u64 age_ns;   /* free, in struct call_event: age of the allocation; 0: unknown */
        __u64 pitch_at; /* allocation in flight: address at which the call will store the pitch; 0: no pitch */
    };
    __u32 context; /* our id for the context that owns the memory; 0: none, or unknown */
    __u8 sized;    /* nonzero if `bytes` is known */
    __u8 zero[3];
};

/* One graph call. */
struct graph_call {
    __u64 graph; /* handle of the graph; 0: none */
    __u64 exec;
    __u32 kernels; /* number of known kernel nodes; for a launch, these are the kernels that it starts */
    __u32 copies;  /* number of copy and set nodes */
    __u32 others;
    __u32 unknown; /* nonzero if the graph also has nodes that are not counted here */
};

/* Indexes of a row's counters in call_stats. The counters that all kinds share are followed by the counters that depend
 * on the kind. Rows are merged by adding their counters, unless merges_of() in src/rows/calls.cpp has another rule. */
enum call_figure {
    CALL_COUNT,
    CALL_TOTAL_NS, /* total latency */
    CALL_MAX_NS,
    CALL_LAST, /* time of the last call, in jiffies or ns; when rows are merged, the shape or size of the row with the
                  latest call is kept */
    FIRST_KIND_FIGURE,
    CALL_FIGURES = FIRST_KIND_FIGURE + 4,
};

enum launch_figure {
    LAUNCH_SHAPE = FIRST_KIND_FIGURE, /* shape of the last launch: struct launch_shape */
};

enum copy_figure {
    COPY_BYTES = FIRST_KIND_FIGURE,
    COPY_SMALL,     /* number of copies of less than SMALL_COPY bytes */
    COPY_UNSIZED,   /* number of copies of unknown size */
    COPY_CONTINUED, /* number of copies that are not the first of their call; CALL_COUNT minus this is the number of
                       calls */
};

enum memory_figure {
    MEMORY_BYTES = FIRST_KIND_FIGURE,
    MEMORY_UNSIZED,    /* number of calls of unknown size */
    MEMORY_LAST_BYTES, /* bytes of the last call; set only in rows of failed calls */
};

enum graph_figure {
    GRAPH_KERNELS = FIRST_KIND_FIGURE, /* number of kernels that launches of graphs with known nodes started */
    GRAPH_SETUP_NS,                    /* total duration of captures, from begin to end, and of instantiations */
    GRAPH_UNKNOWN,                     /* number of launches of graphs with unknown nodes */
};

struct call_stats {
    __u64 v[CALL_FIGURES];
};

/* Amounts that one call adds to the counters of its kind. BPF programs add these amounts. If the table had no room for
 * the call, the front end adds them. */
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
    v[GRAPH_KERNELS] = graph->unknown ? 0 : graph->kernels;
    v[GRAPH_UNKNOWN] = graph->unknown ? 1 : 0;
}

/* A row of the per-CPU cache of the table `calls` (base/call.bpf.h). The row is free if key.image.pid is 0. */
struct front_row {
    struct call_stats stats; /* first field, so that a pointer to the row also points to its stats */
    struct call_key key;
};

#define KEY_WORDS (sizeof(struct call_key) / 8)

/* Returns a word of a key. Only the first `bytes` bytes of the key (a multiple of 4) are used; the others read as 0. */
static inline __attribute__((always_inline)) __u64 key_word(const struct call_key* key, __u32 word, __u32 bytes)
{
    __u64 whole = ((const __u64*)key)[word];
    return bytes >= word * 8 + 8 ? whole : bytes > word * 8 ? (__u32)whole : 0;
}

/* Returns the index of a key's row in a CPU's cache of 1 << bits rows. */
static inline __attribute__((always_inline)) __u32 front_place(const struct call_key* key, __u32 bytes, __u32 bits)
{
    __u64 hash = 0;
    for (__u32 i = 0; i < KEY_WORDS; i++)
        if (i * 8 < bytes)
            hash = (hash ^ key_word(key, i, bytes)) * 0x9e3779b97f4a7c15ULL;
    return (__u32)(hash >> 32) >> (32 - bits);
}

struct call_event {
    __u32 type; /* RECORD_CALL, or RECORD_SPILL if the table `calls` was full */
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
    char comm[16]; /* name of the thread */
};

static inline __attribute__((always_inline)) __u8 copy_memory(__u8 source, __u8 destination)
{
    return (__u8)(source << 4 | destination);
}

/* Lines: the records of option -e. They form a ring in an array that the front end maps into its memory. */

/* Line N is stored in element 1 + N % capacity. */
struct line {
    __u64 published; /* set to N + 1 when line N is complete */
    struct call_event event;
};

/* Write and read positions of the ring. They are stored in element 0 of the array. */
struct line_positions {
    __u64 reserved; /* number of lines for which a slot was reserved so far; written by BPF programs */
    __u64 padding[15];
    __u64 consumed; /* number of lines read so far, whose slots are free again; written by the front end */
};

#endif
