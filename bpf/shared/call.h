/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* How calls are counted: one table of rows for all tools, one record per call for -e. */
#ifndef GPUSNOOP_CALL_H
#define GPUSNOOP_CALL_H

#include <linux/types.h>

#include "probe.h"
#include "process.h"

#define DEVICE_UNKNOWN 0xff
#define BUCKET_NONE 0xffff /* not measured, or not readable */

#define STACK_WITHOUT_FIRST 0x100000 /* in a stack's id: its innermost address is not in the map */

#define CALL_RECORDED 1     /* under stream capture: not executed */
#define CALL_ASYNCHRONOUS 2 /* returns before the work is done, by its form */
#define CALL_NOT_READY 4    /* asked, and the work is not done yet */
#define CALL_IN_PARTS 8     /* a report fell into it: its time is told by parts, elsewhere */
#define CALL_UNTRACKED 16   /* allocated, but not to be matched with its free: not in what is held */
#define CALL_SUBJECT 32     /* an ioctl's command, class or function is known */
#define CALL_VIRTUAL 64     /* its bytes are address space, not memory */
#define CALL_GENERATION 128 /* of a row in the table: which of two generations it belongs to (base/call.bpf.h) */

#define FEW_BLOCKS 32 /* of a grid: no GPU is filled by fewer */

struct launch_form {
    __u16 blocks;  /* bucket of the number of blocks in the grid; without shapes, that of 1 or of FEW_BLOCKS */
    __u16 threads; /* bucket of the number of threads in a block */
};

struct copy_form {
    __u16 size;     /* bucket of its bytes */
    __u8 direction; /* enum direction */
    __u8 memory;    /* enum memory, twice: source and destination; see copy_memory() */
};

struct wait_form {
    __u8 wait; /* enum wait */
    __u8 zero[3];
};

struct memory_form {
    __u16 size;   /* bucket of its bytes */
    __u8 holding; /* enum holding */
    __u8 zero;
};

struct graph_form {
    __u8 reason; /* of an update: enum CUgraphExecUpdateResult; UPDATE_REASON_UNKNOWN */
    __u8 zero[3];
};

struct driver_form {
    __u16 minor;
    __u8 node;    /* enum driver_node */
    __u8 outcome; /* enum driver_outcome: what the result means */
};

/* What a row of the table stands for. A field that the chosen view does not tell apart is 0. Shape, size and duration
 * are part of the key as histogram buckets: a kernel has few of each, so this is a sparse histogram in a single lookup.
 * Hashing it is a good part of what a call costs, so what few views ask for comes last and the map's key may end
 * before. */
struct call_key {
    struct image image;
    __u8 kind; /* enum probe_kind; some stand for several; enum driver_entry */
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
    __u64 subject; /* CUfunction, CUkernel or host stub; graph, or its number; host function; event; number of a
                    * context; request of an ioctl, and above it what that is about */
    /* of calls with a result or a duration, and of the function by name */
    __s32 result;
    __u16 duration; /* bucket of what is measured, in the unit asked for */
    __u16 function; /* number of its row in the probe table; 0 none */
    /* of finer views */
    __u32 tid;
    __s32 stack; /* id in the stack map, negative for none */
    __u64 stream;
    __u64 caller; /* return address of the call (-U) */
    struct cgroups cgroups;
};

struct launch_shape {
    __u32 grid[3];
    __u32 block[3];
    __u64 smem; /* dynamic shared memory, bytes */
};

/* One copy; of those of a batch beyond BATCH_MAX, `copies` at once. */
struct copy {
    __u64 bytes; /* of all of them */
    __u64 destination;
    __u64 source;
    __u32 copies;
    __u8 sized;  /* bytes are known */
    __u8 begins; /* it is its call's first */
    __u8 zero[2];
};

#define SMALL_COPY (64 << 10)

/* One allocation, or what is freed. */
struct memory_call {
    __u64 address; /* or handle */
    __u64 bytes;
    union {
        __u64 since_ns; /* of what is freed: when it was allocated, CLOCK_MONOTONIC; 0 unknown */
        __u64 age_ns;   /* in an event: how long ago that was; 0 unknown */
        __u64 pitch_at; /* of an allocation that has not returned: where it stores its pitch; 0: it has none */
    };
    __u32 context; /* number of the one that it ends with; 0 none, or unknown */
    __u8 sized;    /* bytes are known */
    __u8 zero[3];
};

/* One call of a graph's life. */
struct graph_call {
    __u64 graph; /* handle; 0 none */
    __u64 exec;
    __u32 kernels; /* nodes, once they are known: of a launch, what it starts */
    __u32 copies;  /* and sets */
    __u32 others;
    __u32 unknown; /* there are more */
};

/* Figures of a row, by their place in call_stats: those of all calls, then those of the row's kind. A new one is a sum
 * unless merges_of() in src/rows/calls.cpp has another rule for it. */
enum call_figure {
    CALL_COUNT,
    CALL_TOTAL_NS, /* latency */
    CALL_MAX_NS,
    CALL_LAST, /* time of the last call, in jiffies or ns: which CPU has the last shape or size */
    FIRST_KIND_FIGURE,
    CALL_FIGURES = FIRST_KIND_FIGURE + 4,
};

enum launch_figure {
    LAUNCH_SHAPE = FIRST_KIND_FIGURE, /* struct launch_shape, of the last launch */
};

enum copy_figure {
    COPY_BYTES = FIRST_KIND_FIGURE,
    COPY_SMALL,     /* copies of less than SMALL_COPY bytes */
    COPY_UNSIZED,   /* copies whose bytes are not known */
    COPY_CONTINUED, /* copies of a batch behind its first: calls are the others. -1 for a batch of none */
};

enum memory_figure {
    MEMORY_BYTES = FIRST_KIND_FIGURE,
    MEMORY_UNSIZED,    /* calls whose bytes are not known */
    MEMORY_LAST_BYTES, /* of the last call: of rows that failed */
};

enum graph_figure {
    GRAPH_KERNELS = FIRST_KIND_FIGURE, /* that launches started */
    GRAPH_SETUP_NS,                    /* of captures, from begin to end; of instantiations */
    GRAPH_UNKNOWN,                     /* launches of graphs whose nodes are not known */
};

struct call_stats {
    __u64 v[CALL_FIGURES];
};

/* Sums that one call adds to the figures of its kind: in the kernel, or, if it found no row, in the front end. */
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

/* A row in front of the table, for calls on one CPU; it is free where the pid is 0. */
struct front_row {
    struct call_stats stats; /* first, so that a row is a pointer to them */
    struct call_key key;
};

#define KEY_WORDS (sizeof(struct call_key) / 8)

/* Word of a key of which so many bytes count, a multiple of 4. */
static inline __attribute__((always_inline)) __u64 key_word(const struct call_key* key, __u32 word, __u32 bytes)
{
    __u64 whole = ((const __u64*)key)[word];
    return bytes >= word * 8 + 8 ? whole : bytes > word * 8 ? (__u32)whole : 0;
}

/* Which of 1 << bits rows of its CPU a key belongs into. */
static inline __attribute__((always_inline)) __u32 front_place(const struct call_key* key, __u32 bytes, __u32 bits)
{
    __u64 hash = 0;
    for (__u32 i = 0; i < KEY_WORDS; i++)
        if (i * 8 < bytes)
            hash = (hash ^ key_word(key, i, bytes)) * 0x9e3779b97f4a7c15ULL;
    return (__u32)(hash >> 32) >> (32 - bits);
}

struct call_event {
    __u32 type; /* RECORD_CALL, or RECORD_SPILL where the table was full */
    __u32 tid;
    __u64 time_ns;     /* CLOCK_MONOTONIC at entry */
    __u64 duration_ns; /* latency; 0 when not measured */
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

/* The lines of -e, one after the other in an array that the front end reads as memory. */

/* The place of line N is element 1 + N modulo their number. */
struct line {
    __u64 published; /* N + 1 once line N is in this place */
    struct call_event event;
};

/* In element 0: how far they are. */
struct line_positions {
    __u64 reserved; /* lines that have been given a place. Changed by the kernel side */
    __u64 padding[15];
    __u64 consumed; /* lines that have been read: their places are free. Changed by the front end */
};

#endif
