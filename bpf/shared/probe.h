/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Where a probed function keeps its arguments, as data. A call has the argument registers, then the words of one
 * block of memory (the stack slots, or a structure that a register points to). An operand
 * names a word and which part of it. One program reads any row of the table: launches read the whole block at once, all
 * others only the words they need. */
#ifndef GPUSNOOP_PROBE_H
#define GPUSNOOP_PROBE_H

#include <linux/types.h>

/* Probes on single processes may be replaced by probes on every process while calls go on (bpf/base/probe.bpf.h). */

/* In a probe's cookie, above its number: it belongs to the second attachment; whose of the tool's hooks it is. */
#define COOKIE_SECOND 0x80000000u
#define COOKIE_HOOK_SHIFT 32
#define HOOKS_MAX 64
/* ... and a word of the file: the number of a driver, CUDA's or HIP's; of NCCL, where in a communicator its identity
 * is, divided by 8. */
#define COOKIE_OF_DRIVER (1ULL << 39)
#define COOKIE_WORD_SHIFT 40
#define COOKIE_WORD_MAX ((1u << 24) - 1)

/* Which attachment counts. */
enum attach_phase {
    ATTACH_FIRST = 0,
    ATTACH_PENDING = 1, /* the first; the second is being made */
    ATTACH_BOTH = 2,    /* the second, and the first what the second has not seen */
    ATTACH_SECOND = COOKIE_SECOND,
};

enum hit {
    HIT_ENTRY,
    HIT_RETURN,
    HITS,
};

/* WORD_ZERO: an argument that the call does not have, and that is 0 then. */
#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#define ARGUMENT_REGISTERS 6
#define WORD_ZERO 6 /* among the words: a constant */
#define WORDS_HAVE_CONSTANTS 1
#else
#define ARGUMENT_REGISTERS 8
#define WORD_ZERO 64 /* the words have no room for it */
#define WORDS_HAVE_CONSTANTS 0
#endif
#define WORD_ONE (WORD_ZERO + 1) /* ... and that is 1 then */
#define WORD_BLOCK 8             /* first word of the block */
#define BLOCK_WORDS_MAX 32
#define LAUNCH_WORDS_MAX 8 /* of a block that is read at once; a power of two */
#define WORDS 16           /* registers, constants and such a block */

/* The bits say how a word is shifted to leave only the part (operand_part). */
enum part {
    PART_WHOLE = 0,
    PART_LOW = 32,  /* 32-bit arguments: the upper half of a register or slot is undefined (psABI 3.2.3) */
    PART_HIGH = 96, /* dim3 by value: x and y share a register */
};

struct operand {
    __u8 word;
    __u8 part;
};

enum block_base {
    BLOCK_NONE,
    BLOCK_STACK,    /* slots s0, s1, ... at rsp + 8 */
    BLOCK_REGISTER, /* BLOCK_REGISTER + WORD_x: behind that pointer */
};

/* What an argument means to a tool. */
enum argument {
    ARG_FUNC,
    ARG_STREAM,
    ARG_GRID_X,
    ARG_GRID_Y,
    ARG_GRID_Z,
    ARG_BLOCK_X,
    ARG_BLOCK_Y,
    ARG_BLOCK_Z,
    ARG_SMEM,
    ARG_OUT,    /* pointer that the call stores its result through */
    ARG_NAME,   /* zero-terminated string */
    ARG_HANDLE, /* whatever else the call works on */
    ARG_COUNT,  /* elements behind a list pointer */
    ARG_DEVICE,
    ARG_DESTINATION, /* of a copy; of a batch: the list of them */
    ARG_SOURCE,
    ARG_BYTES, /* or elements, or the width in bytes; of a batch: the list of them */
    ARG_HEIGHT,
    ARG_DEPTH,
    ARG_DIRECTION,        /* enum cudaMemcpyKind */
    ARG_DESTINATION_TYPE, /* of the enumeration that the row tells (enum memory_types) */
    ARG_SOURCE_TYPE,
    ARG_DESTINATION_HOST, /* the destination where its type says host */
    ARG_SOURCE_HOST,
    ARG_DESTINATION_ARRAY, /* the destination is an array where this is not null */
    ARG_SOURCE_ARRAY,
    ARG_ADDRESS,  /* of memory that exists already: registered, mapped, freed */
    ARG_PITCH,    /* pointer that the call stores the bytes of a row through */
    ARG_LOCATION, /* enum CUmemLocationType */
    ARG_FORMAT,   /* of an array's elements: enum CUarray_format, and how many of them */
    ARG_CHANNELS,
    ARG_CHANNEL_BITS, /* pointer to the four widths of cudaChannelFormatDesc */
    ARG_LEVELS,       /* of a mipmapped array */
    ARG_GRAPH,
    ARG_CHILD,     /* a graph that is a node of another one */
    ARG_NODE_TYPE, /* enum CUgraphNodeType */
    ARG_ROOT,      /* the rank that a collective is from or to */
    ARG_REDUCTION, /* enum ncclRedOp_t */
    ARGUMENTS,
};

enum probe_kind {
    KIND_NONE,
    KIND_LAUNCH,        /* one kernel, arguments in registers and stack slots or behind a config pointer */
    KIND_LAUNCH_LEGACY, /* block and shared memory were set before by KIND_SHAPE */
    KIND_LAUNCH_LIST,   /* ARG_COUNT kernels, one structure of the block's size each */
    KIND_LAUNCH_ITEMS,  /* the grid is told in work items, not in blocks */
    KIND_GRAPH_LAUNCH,
    KIND_HOST_FUNC,
    KIND_SHAPE,
    KIND_CAPTURE_BEGIN,
    KIND_CAPTURE_END,
    KIND_GET_FUNCTION, /* *ARG_OUT is the handle of the kernel called ARG_NAME */
    KIND_GET_ALIAS,    /* *ARG_OUT is another handle of ARG_HANDLE */
    KIND_REGISTER,     /* ARG_HANDLE (a host stub) stands for the kernel called ARG_NAME */
    KIND_CONTEXT_NEW,  /* *ARG_OUT is a context on ARG_DEVICE; KIND_CONTEXT_CREATE also makes it current */
    KIND_CONTEXT_CREATE,
    KIND_CONTEXT_SET,  /* ARG_HANDLE becomes current in place of the one that is; 0: as popped */
    KIND_CONTEXT_PUSH, /* ... and the one that is, again when it is popped or destroyed */
    KIND_CONTEXT_POP,
    KIND_DEVICE_SET,    /* the thread's device becomes ARG_DEVICE (runtime), or that of the context ARG_HANDLE (HIP) */
    KIND_COPY,          /* copies, sets and prefetches: ARG_BYTES x ARG_HEIGHT x ARG_DEPTH x element_bytes */
    KIND_COPY_BATCH,    /* ARG_COUNT of them, from lists of addresses and sizes */
    KIND_COPY_BATCH_3D, /* ARG_COUNT structures of the block's size; without it: one */
    KIND_WAIT,          /* the host waits for the device, or asks whether it must */
    KIND_ALLOC,         /* *ARG_OUT is the address of ARG_BYTES new bytes; with ARG_PITCH, of *ARG_PITCH x ARG_HEIGHT,
                         * which was to be no less than ARG_BYTES x ARG_HEIGHT */
    KIND_REGISTER_HOST, /* ARG_BYTES of host memory at ARG_ADDRESS are pinned from now on */
    KIND_FREE,          /* ARG_ADDRESS is free again, or no longer pinned */
    KIND_PHYSICAL_NEW,  /* *ARG_OUT is a handle of physical memory at ARG_LOCATION */
    KIND_PHYSICAL_RETAIN, /* *ARG_OUT is a handle that there is already, once more */
    KIND_PHYSICAL_FREE,   /* of ARG_HANDLE */
    KIND_MAP,             /* ARG_BYTES of physical memory ARG_HANDLE are at ARG_ADDRESS from now on */
    KIND_UNMAP,
    KIND_CONTEXT_DESTROY, /* the context ARG_HANDLE ends, the primary one of ARG_DEVICE, or what HIP has on the thread's
                           * device, and its memory with it */
    KIND_CONTEXT_RELEASE, /* the primary context of ARG_DEVICE, which ends with the last of its holders */
    KIND_TRIM,            /* a pool gives back what it keeps beyond what is allocated from it */
    KIND_INIT,            /* the first call of a process */
    KIND_GRAPH_NEW,       /* *ARG_OUT is a graph: empty, or a copy of ARG_GRAPH */
    KIND_GRAPH_NODE,      /* ARG_GRAPH gets a node: the row tells of which kind, or ARG_NODE_TYPE, or it is ARG_CHILD */
    KIND_GRAPH_DESTROY,   /* ARG_GRAPH is destroyed */
    KIND_GRAPH_INSTANTIATE, /* *ARG_OUT executes ARG_GRAPH */
    KIND_GRAPH_UPLOAD,      /* ARG_FUNC, which executes, gets ready */
    KIND_GRAPH_UPDATE,      /* ARG_FUNC executes ARG_GRAPH from now on, or not: *ARG_OUT tells why */
    KIND_GRAPH_SET,         /* ARG_FUNC has a node with other parameters */
    KIND_EXEC_DESTROY,      /* ARG_FUNC is destroyed */
    KIND_EVENT_RECORD,      /* ARG_HANDLE, in ARG_STREAM */
    KIND_EVENT_WAIT,        /* ARG_STREAM waits for ARG_HANDLE */
    KIND_EVENT_DESTROY,     /* ARG_HANDLE is destroyed */
    KIND_STREAM_NEW,        /* *ARG_OUT is a stream */
    KIND_STREAM_DESTROY,    /* ARG_STREAM is destroyed */
    KIND_COLLECTIVE,        /* of all ranks of the communicator ARG_HANDLE: ARG_BYTES elements of the type ARG_FORMAT */
    KIND_MESSAGE,           /* the same, of two of them */
    KIND_GROUP_BEGIN,       /* what follows on this thread is enqueued when the group ends */
    KIND_GROUP_END,
    KIND_GROUP_DROP,   /* it ends, and nothing is enqueued */
    KIND_COMM_NEW,     /* *ARG_OUT is a communicator; with ARG_COUNT, so many are there */
    KIND_COMM_DESTROY, /* ARG_HANDLE ends */
    KIND_COMM_QUERY,   /* ARG_HANDLE goes on, or not: *ARG_OUT is why, where there is one */
    KINDS,
};

enum probe_layer {
    LAYER_DRIVER,
    LAYER_RUNTIME,
    LAYER_KERNEL, /* calls into drivers, which no table of probes has */
    LAYER_HIP,
};

enum direction {
    DIRECTION_UNKNOWN,
    DIRECTION_H2D, /* arrays are device memory */
    DIRECTION_D2H,
    DIRECTION_D2D,
    DIRECTION_H2H,
    DIRECTION_P2P,
    DIRECTION_SET,
    DIRECTION_PREFETCH,
    DIRECTIONS,
};

/* Where an address leads to. */
enum memory {
    MEMORY_UNKNOWN,
    MEMORY_DEVICE,
    MEMORY_ARRAY,
    MEMORY_MANAGED,  /* host or device, whoever touched it last */
    MEMORY_PINNED,   /* host */
    MEMORY_PAGEABLE, /* host */
    MEMORY_HOST,     /* pinned or pageable */
    MEMORIES,
};

/* What a process holds by a call that allocates. */
enum holding {
    HOLDING_NONE,
    HOLDING_DEVICE,
    HOLDING_ARRAY,
    HOLDING_POOL, /* allocated in stream order */
    HOLDING_VMM,  /* physical memory, wherever it is mapped */
    HOLDING_MANAGED,
    HOLDING_PINNED,
    HOLDING_REGISTERED, /* host memory that was there before, pinned */
    HOLDING_IMPORTED,   /* somebody else's memory, from here on */
    HOLDING_EXTERNAL,   /* that of another API */
    HOLDING_RESERVED,   /* addresses */
    HOLDING_MAPPED,     /* addresses with memory behind them that counts elsewhere */
    HOLDING_GRAPH,      /* of a graph's node, which there is while the graph runs */
    HOLDING_POOL_OBJECT,
    HOLDING_MULTICAST,
    HOLDINGS,
};

/* What the nodes of a graph are. */
enum graph_node {
    NODE_OTHER, /* empty, event, semaphore, memory, conditional */
    NODE_KERNEL,
    NODE_COPY,
    NODE_SET,
    NODE_HOST,
    GRAPH_NODES,
    NODE_UNSPECIFIED = GRAPH_NODES, /* by the row */
};

enum wait {
    WAIT_NONE,
    WAIT_STREAM,
    WAIT_CONTEXT,
    WAIT_EVENT,
    WAIT_VALUE, /* the stream waits, not the host */
    WAIT_COPY,  /* synchronous ones */
    WAIT_FREE,
    WAIT_POLL, /* asks, and returns CUDA_ERROR_NOT_READY while the work is not done */
    WAITS,
};

#define PROBE_ROWS_MAX 1024 /* of one tool; a power of two */

/* What the number of a type of memory means: where its enumeration begins in one table of all of them. */
enum memory_types {
    TYPES_CUDA = 0,    /* CUmemorytype, up to 4 */
    TYPES_OPERAND = 8, /* CUmemcpy3DOperandType, up to 2 */
    TYPES_HIP5 = 12,   /* hipMemoryType of HIP 5, up to 4 */
    TYPES_HIP6 = 20,   /* ... and from HIP 6 on, up to 11 */
    TYPES = 32,
};

struct probe_row {
    __u8 kind;
    __u8 layer;
    __u8 block_base;
    __u8 block_words;
    __u8 per_thread_stream; /* _ptsz, _ptds: stream 0 is the calling thread's own */
    __u8 asynchronous;      /* by its form: it returns before the work is done */
    __u8 element_bytes;     /* of what ARG_BYTES counts */
    __u8 direction;         /* DIRECTION_UNKNOWN: the arguments tell */
    __u8 memory;            /* what is allocated, or freed */
    __u8 wait;
    __u8 array_elements; /* ARG_BYTES counts elements of the array where one takes part, not bytes */
    __u8 holding;        /* what is allocated, or freed */
    __u8 out_offset;     /* from ARG_OUT to where the result is stored */
    __u8 pitch_offset;   /* ... and from ARG_PITCH */
    __u8 node;           /* enum graph_node */
    __u8 often;          /* called more often than others: a program may be for it alone */
    __u8 counted_as;     /* enum probe_kind: what tools tell apart; a launch of any form is a KIND_LAUNCH */
    __u8 types;          /* enum memory_types: of ARG_DESTINATION_TYPE and ARG_SOURCE_TYPE */
    struct operand args[ARGUMENTS];
};

static inline __attribute__((always_inline)) int operand_present(__u8 word)
{
    return word != WORD_ZERO && word != WORD_ONE;
}

/* The word of this number, of those that are read at once. Without branches, as below. */
static inline __attribute__((always_inline)) unsigned long long operand_word(const unsigned long long* words,
                                                                             unsigned number)
{
    unsigned long long word = words[number & (WORDS - 1)];
#if !WORDS_HAVE_CONSTANTS
    unsigned long long constant = number / WORD_ZERO;
    __asm__("" : "+r"(constant));
    word = (word & (constant - 1)) | (number & constant);
#endif
    return word;
}

/* Without branches: a call has up to twelve arguments, and the verifier walks through every path. The barriers keep
 * clang from making branches of the shifts. */
static inline __attribute__((always_inline)) unsigned long long operand_part(unsigned long long word, __u8 part)
{
    unsigned long long down = part >> 1 & 32, up = part & 32;
    __asm__("" : "+r"(down));
    __asm__("" : "+r"(up));
    return word >> down << up >> up;
}

#endif
