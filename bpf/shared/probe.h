/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Rows of the probe table, which describe the arguments of probed functions. A call has the argument registers, then
 * the words of one block of memory (stack slots, or a structure that a register points to). An operand names a word and
 * a part of it. One program can read any row: launches read the whole block at once, other calls only the words that
 * they need. */
#ifndef GPUSNOOP_PROBE_H
#define GPUSNOOP_PROBE_H

#include <linux/types.h>

/* Probes on single processes can be replaced by probes on all processes while calls are in flight
 * (bpf/base/probe.bpf.h). */

/* Bits of a probe's cookie above its row number: second attachment; number of the hook, which is one set of calls of a
 * tool. */
#define COOKIE_SECOND 0x80000000u
#define COOKIE_HOOK_SHIFT 32
#define HOOKS_MAX 64
/* A word that depends on the probed file. For CUDA and HIP, the number of the driver; for NCCL, the offset of the
 * identity in a communicator, divided by 8. */
#define COOKIE_OF_DRIVER (1ULL << 39)
#define COOKIE_WORD_SHIFT 40
#define COOKIE_WORD_MAX ((1u << 24) - 1)

/* The attachment that counts. */
enum attach_phase {
    ATTACH_FIRST = 0,
    ATTACH_PENDING = 1, /* the first, while the second is being made */
    ATTACH_BOTH = 2,    /* the second; the first counts what the second has not seen */
    ATTACH_SECOND = COOKIE_SECOND,
};

enum hit {
    HIT_ENTRY,
    HIT_RETURN,
    HITS,
};

/* WORD_ZERO: an argument that the call does not have, and that reads as 0. */
#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#define ARGUMENT_REGISTERS 6
#define WORD_ZERO 6 /* one of the words: a constant */
#define WORDS_HAVE_CONSTANTS 1
#else
#define ARGUMENT_REGISTERS 8
#define WORD_ZERO 64 /* not one of the words, which have no room for it */
#define WORDS_HAVE_CONSTANTS 0
#endif
#define WORD_ONE (WORD_ZERO + 1) /* an argument that the call does not have, and that reads as 1 */
#define WORD_BLOCK 8             /* first word of the block */
#define BLOCK_WORDS_MAX 32
#define LAUNCH_WORDS_MAX 8 /* of a block that is read at once; a power of two */
#define WORDS 16           /* registers, constants and a block that is read at once */

/* Bits that control how a word is shifted to leave only the part (see operand_part). */
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
    BLOCK_REGISTER, /* BLOCK_REGISTER + WORD_x: memory that this register points to */
};

/* Meaning of an argument. */
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
    ARG_OUT,    /* pointer through which the call stores its result */
    ARG_NAME,   /* zero-terminated string */
    ARG_HANDLE, /* any other object of the call */
    ARG_COUNT,  /* elements of a list */
    ARG_DEVICE,
    ARG_DESTINATION, /* of a copy; for a batch, the list of destinations */
    ARG_SOURCE,
    ARG_BYTES, /* or elements, or the width in bytes; for a batch, the list of sizes */
    ARG_HEIGHT,
    ARG_DEPTH,
    ARG_DIRECTION,        /* enum cudaMemcpyKind */
    ARG_DESTINATION_TYPE, /* from the enumeration that the row selects (enum memory_types) */
    ARG_SOURCE_TYPE,
    ARG_DESTINATION_HOST, /* the destination if its type is host */
    ARG_SOURCE_HOST,
    ARG_DESTINATION_ARRAY, /* the destination is an array if this is not null */
    ARG_SOURCE_ARRAY,
    ARG_ADDRESS,  /* of existing memory: to be registered, mapped or freed */
    ARG_PITCH,    /* pointer through which the call stores the bytes per row */
    ARG_LOCATION, /* enum CUmemLocationType */
    ARG_FORMAT,   /* of an array's elements: enum CUarray_format, and the number of channels */
    ARG_CHANNELS,
    ARG_CHANNEL_BITS, /* pointer to the four widths of cudaChannelFormatDesc */
    ARG_LEVELS,       /* of a mipmapped array */
    ARG_GRAPH,
    ARG_CHILD,     /* a graph that becomes a node of another one */
    ARG_NODE_TYPE, /* enum CUgraphNodeType */
    ARG_ROOT,      /* the rank that a rooted collective sends from or to */
    ARG_REDUCTION, /* enum ncclRedOp_t */
    ARGUMENTS,
};

enum probe_kind {
    KIND_NONE,
    KIND_LAUNCH,        /* one kernel; arguments in registers and stack slots, or in a config structure */
    KIND_LAUNCH_LEGACY, /* block and shared memory were set before, by KIND_SHAPE */
    KIND_LAUNCH_LIST,   /* ARG_COUNT kernels, one structure of the block's size each */
    KIND_LAUNCH_ITEMS,  /* the grid is in work items, not in blocks */
    KIND_GRAPH_LAUNCH,
    KIND_HOST_FUNC,
    KIND_SHAPE,
    KIND_CAPTURE_BEGIN,
    KIND_CAPTURE_END,
    KIND_GET_FUNCTION, /* *ARG_OUT is the handle of the kernel called ARG_NAME */
    KIND_GET_ALIAS,    /* *ARG_OUT is another handle of ARG_HANDLE */
    KIND_REGISTER,     /* ARG_HANDLE (a host stub) is the kernel called ARG_NAME */
    KIND_CONTEXT_NEW,  /* *ARG_OUT is a context on ARG_DEVICE; KIND_CONTEXT_CREATE also makes it current */
    KIND_CONTEXT_CREATE,
    KIND_CONTEXT_SET,  /* ARG_HANDLE replaces the current context; 0: pops it */
    KIND_CONTEXT_PUSH, /* ARG_HANDLE becomes current, until it is popped or destroyed */
    KIND_CONTEXT_POP,
    KIND_DEVICE_SET,    /* the thread's device becomes ARG_DEVICE (runtime), or that of the context ARG_HANDLE (HIP) */
    KIND_COPY,          /* copies, sets and prefetches: ARG_BYTES x ARG_HEIGHT x ARG_DEPTH x element_bytes */
    KIND_COPY_BATCH,    /* ARG_COUNT copies, from lists of addresses and sizes */
    KIND_COPY_BATCH_3D, /* ARG_COUNT structures of the block's size; one without ARG_COUNT */
    KIND_WAIT,          /* the host waits for the device, or polls it */
    KIND_ALLOC, /* *ARG_OUT is the address of ARG_BYTES new bytes; with ARG_PITCH, of *ARG_PITCH x ARG_HEIGHT, at least
                   ARG_BYTES x ARG_HEIGHT */
    KIND_REGISTER_HOST,   /* ARG_BYTES of host memory at ARG_ADDRESS become pinned */
    KIND_FREE,            /* ARG_ADDRESS is freed, or no longer pinned */
    KIND_PHYSICAL_NEW,    /* *ARG_OUT is a handle of physical memory at ARG_LOCATION */
    KIND_PHYSICAL_RETAIN, /* *ARG_OUT is an existing handle, with another reference */
    KIND_PHYSICAL_FREE,   /* releases ARG_HANDLE */
    KIND_MAP,             /* ARG_BYTES of physical memory ARG_HANDLE are mapped at ARG_ADDRESS */
    KIND_UNMAP,
    KIND_CONTEXT_DESTROY, /* the context ARG_HANDLE, the primary context of ARG_DEVICE, or everything of HIP on the
                             thread's device ends, with its memory */
    KIND_CONTEXT_RELEASE, /* releases the primary context of ARG_DEVICE, which ends with its last holder */
    KIND_TRIM,            /* a pool frees memory that it keeps in reserve */
    KIND_INIT,            /* the first call of a process */
    KIND_GRAPH_NEW,       /* *ARG_OUT is a graph: empty, or a copy of ARG_GRAPH */
    KIND_GRAPH_NODE,    /* ARG_GRAPH gets a node, whose kind is in the row or in ARG_NODE_TYPE, or which is ARG_CHILD */
    KIND_GRAPH_DESTROY, /* ARG_GRAPH is destroyed */
    KIND_GRAPH_INSTANTIATE, /* *ARG_OUT is an executable graph of ARG_GRAPH */
    KIND_GRAPH_UPLOAD,      /* the executable graph ARG_FUNC is uploaded */
    KIND_GRAPH_UPDATE,      /* ARG_FUNC is updated to ARG_GRAPH; if that fails, *ARG_OUT is the reason */
    KIND_GRAPH_SET,         /* a node of ARG_FUNC gets other parameters */
    KIND_EXEC_DESTROY,      /* ARG_FUNC is destroyed */
    KIND_EVENT_RECORD,      /* ARG_HANDLE is recorded in ARG_STREAM */
    KIND_EVENT_WAIT,        /* ARG_STREAM waits for ARG_HANDLE */
    KIND_EVENT_DESTROY,     /* ARG_HANDLE is destroyed */
    KIND_STREAM_NEW,        /* *ARG_OUT is a stream */
    KIND_STREAM_DESTROY,    /* ARG_STREAM is destroyed */
    KIND_COLLECTIVE,        /* by all ranks of the communicator ARG_HANDLE: ARG_BYTES elements of type ARG_FORMAT */
    KIND_MESSAGE,           /* like KIND_COLLECTIVE, but between two ranks */
    KIND_GROUP_BEGIN,       /* later calls of this thread are enqueued when the group ends */
    KIND_GROUP_END,
    KIND_GROUP_DROP,   /* the group ends, and nothing is enqueued */
    KIND_COMM_NEW,     /* *ARG_OUT is a communicator; with ARG_COUNT, that many */
    KIND_COMM_DESTROY, /* ARG_HANDLE is destroyed */
    KIND_COMM_QUERY,   /* state of ARG_HANDLE; *ARG_OUT, if there is one, is its error */
    KINDS,
};

enum probe_layer {
    LAYER_DRIVER,
    LAYER_RUNTIME,
    LAYER_KERNEL, /* calls into kernel drivers, which are not in the probe table */
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

/* Kind of memory at an address. */
enum memory {
    MEMORY_UNKNOWN,
    MEMORY_DEVICE,
    MEMORY_ARRAY,
    MEMORY_MANAGED,  /* host or device, by the last access */
    MEMORY_PINNED,   /* host */
    MEMORY_PAGEABLE, /* host */
    MEMORY_HOST,     /* pinned or pageable */
    MEMORIES,
};

/* Kinds of allocations. */
enum holding {
    HOLDING_NONE,
    HOLDING_DEVICE,
    HOLDING_ARRAY,
    HOLDING_POOL, /* allocated in stream order */
    HOLDING_VMM,  /* physical memory, mapped or not */
    HOLDING_MANAGED,
    HOLDING_PINNED,
    HOLDING_REGISTERED, /* existing host memory, pinned */
    HOLDING_IMPORTED,   /* memory of another process */
    HOLDING_EXTERNAL,   /* memory of another API */
    HOLDING_RESERVED,   /* reserved addresses */
    HOLDING_MAPPED,     /* mapped addresses, whose memory counts elsewhere */
    HOLDING_GRAPH,      /* memory of a graph's allocation node, which exists while the graph runs */
    HOLDING_POOL_OBJECT,
    HOLDING_MULTICAST,
    HOLDINGS,
};

/* Kinds of graph nodes. */
enum graph_node {
    NODE_OTHER, /* empty, event, semaphore, memory, conditional */
    NODE_KERNEL,
    NODE_COPY,
    NODE_SET,
    NODE_HOST,
    GRAPH_NODES,
    NODE_UNSPECIFIED = GRAPH_NODES, /* the row does not give the kind */
};

enum wait {
    WAIT_NONE,
    WAIT_STREAM,
    WAIT_CONTEXT,
    WAIT_EVENT,
    WAIT_VALUE, /* the stream waits, not the host */
    WAIT_COPY,  /* synchronous copies */
    WAIT_FREE,
    WAIT_POLL, /* returns CUDA_ERROR_NOT_READY while the work is not done */
    WAITS,
};

#define PROBE_ROWS_MAX 1024 /* per tool; a power of two */

/* Enumerations of memory types, by their offset in a table of all of them. */
enum memory_types {
    TYPES_CUDA = 0,    /* CUmemorytype, up to 4 */
    TYPES_OPERAND = 8, /* CUmemcpy3DOperandType, up to 2 */
    TYPES_HIP5 = 12,   /* hipMemoryType of HIP 5, up to 4 */
    TYPES_HIP6 = 20,   /* hipMemoryType from HIP 6 on, up to 11 */
    TYPES = 32,
};

struct probe_row {
    __u8 kind;
    __u8 layer;
    __u8 block_base;
    __u8 block_words;
    __u8 per_thread_stream; /* _ptsz, _ptds: stream 0 is the calling thread's own */
    __u8 asynchronous;      /* the function returns before the work is done */
    __u8 element_bytes;     /* bytes per unit of ARG_BYTES */
    __u8 direction;         /* DIRECTION_UNKNOWN: given by the arguments */
    __u8 memory;            /* enum memory that is allocated or freed */
    __u8 wait;
    __u8 array_elements; /* if an array takes part, ARG_BYTES counts its elements, not bytes */
    __u8 holding;        /* enum holding that is allocated or freed */
    __u8 out_offset;     /* from ARG_OUT to where the result is stored */
    __u8 pitch_offset;   /* from ARG_PITCH to where the pitch is stored */
    __u8 node;           /* enum graph_node */
    __u8 often;          /* called more often than others, so a program may be for it alone */
    __u8 counted_as;     /* enum probe_kind that tools count it as; all forms of launch are KIND_LAUNCH */
    __u8 types;          /* enum memory_types of ARG_DESTINATION_TYPE and ARG_SOURCE_TYPE */
    struct operand args[ARGUMENTS];
};

static inline __attribute__((always_inline)) int operand_present(__u8 word)
{
    return word != WORD_ZERO && word != WORD_ONE;
}

/* A word that was read at once, by its number. Without branches, like operand_part(). */
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

/* Without branches: a call has up to twelve arguments, and the verifier walks every path. The barriers keep clang from
 * turning the shifts into branches. */
static inline __attribute__((always_inline)) unsigned long long operand_part(unsigned long long word, __u8 part)
{
    unsigned long long down = part >> 1 & 32, up = part & 32;
    __asm__("" : "+r"(down));
    __asm__("" : "+r"(up));
    return word >> down << up >> up;
}

#endif
