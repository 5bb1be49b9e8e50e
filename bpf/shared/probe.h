/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Rows of the probe table, which describe the arguments of probed functions. The words of a call are its argument
 * registers, then the words of one block of memory (stack slots, or a structure that a register points to). An operand
 * is a word or a part of a word. The same program can handle any row. For launches it reads the whole block at once,
 * and for other calls only the words that it needs. */
#ifndef GPUSNOOP_PROBE_H
#define GPUSNOOP_PROBE_H

#include <linux/types.h>

/* Probes on single processes (the first attachment) can be replaced by probes on all processes (the second attachment)
 * while calls are in flight: see bpf/base/probe.bpf.h. */

/* Bits of a probe's cookie above the row number. A hook is a set of functions to which a tool attaches the same
 * programs. */
#define COOKIE_SECOND 0x80000000u /* the probe belongs to the second attachment */
#define COOKIE_HOOK_SHIFT 32      /* position of the hook's number */
#define HOOKS_MAX 64
/* The upper bits of a cookie are a word that depends on the probed file. For CUDA and HIP, it is the number of the
 * driver file. For NCCL, it is the offset of the rank field in struct ncclComm, divided by 8, combined with the flag
 * COMM_HAS_MAGIC. */
#define COOKIE_OF_DRIVER (1ULL << 39) /* the word is the number of a driver file */
#define COOKIE_WORD_SHIFT 40
#define COOKIE_WORD_MAX ((1u << 24) - 1)

/* Phases of the switch from the first to the second attachment. */
enum attach_phase {
    ATTACH_FIRST = 0,
    ATTACH_PENDING = 1, /* the second attachment is being made; only hits of the first attachment are counted */
    ATTACH_BOTH = 2,    /* hits of the second attachment are counted; a hit of the first is counted only if the second
                           did not see it */
    ATTACH_SECOND = COOKIE_SECOND,
};

enum hit {
    HIT_ENTRY,
    HIT_RETURN,
    HITS,
};

/* If a call does not have an argument, the argument's word is WORD_ZERO, which reads as 0. */
#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#define ARGUMENT_REGISTERS 6
#define WORD_ZERO 6 /* index of the constant 0 among the words */
#define WORDS_HAVE_CONSTANTS 1
#else
#define ARGUMENT_REGISTERS 8
#define WORD_ZERO 64 /* not an index, but higher than all indexes: the array of words has no room for constants */
#define WORDS_HAVE_CONSTANTS 0
#endif
#define WORD_ONE (WORD_ZERO + 1) /* like WORD_ZERO, but reads as 1 */
#define WORD_BLOCK 8             /* index of the first word of the memory block */
#define BLOCK_WORDS_MAX 32       /* maximum size of a memory block, in words */
#define LAUNCH_WORDS_MAX 8       /* maximum size of a launch's memory block, in words; a power of two */
#define WORDS 16                 /* size of the array of a launch's words: registers, constants and the memory block */

/* Part of a word. The bits control how operand_part() shifts the word. */
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
    BLOCK_REGISTER, /* BLOCK_REGISTER + register number: memory to which this register points */
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
    ARG_NAME,   /* address of a zero-terminated string */
    ARG_HANDLE, /* handle of an object that has no argument type of its own, for example a context or an event */
    ARG_COUNT,  /* number of elements of a list */
    ARG_DEVICE,
    ARG_DESTINATION, /* destination of a copy; for a batch, the list of destinations */
    ARG_SOURCE,
    ARG_BYTES, /* size or width, in bytes or elements; for a batch, the list of sizes */
    ARG_HEIGHT,
    ARG_DEPTH,
    ARG_DIRECTION,        /* enum cudaMemcpyKind */
    ARG_DESTINATION_TYPE, /* value from the enumeration that the row selects (enum memory_types) */
    ARG_SOURCE_TYPE,
    ARG_DESTINATION_HOST, /* the destination, if its type is host memory */
    ARG_SOURCE_HOST,
    ARG_DESTINATION_ARRAY, /* the destination if it is an array, else null */
    ARG_SOURCE_ARRAY,
    ARG_ADDRESS,      /* address at which to register, map or free memory */
    ARG_PITCH,        /* pointer through which the call stores the bytes per row */
    ARG_LOCATION,     /* enum CUmemLocationType */
    ARG_FORMAT,       /* format of an array's elements: enum CUarray_format */
    ARG_CHANNELS,     /* number of channels of an array's elements */
    ARG_CHANNEL_BITS, /* pointer to the four widths in cudaChannelFormatDesc */
    ARG_LEVELS,       /* number of levels of a mipmapped array */
    ARG_GRAPH,
    ARG_CHILD,     /* a graph that becomes a node of another one */
    ARG_NODE_TYPE, /* enum CUgraphNodeType */
    ARG_ROOT,      /* the rank that a rooted collective sends from or to */
    ARG_REDUCTION, /* enum ncclRedOp_t */
    ARGUMENTS,
};

enum probe_kind {
    KIND_NONE,
    KIND_LAUNCH,        /* launch of one kernel; the call's arguments are in registers and stack slots, or in a config
                           structure */
    KIND_LAUNCH_LEGACY, /* earlier KIND_SHAPE calls have set block size and shared memory */
    KIND_LAUNCH_LIST,   /* launches ARG_COUNT kernels, from a list of structures of probe_row.block_words words */
    KIND_LAUNCH_ITEMS,  /* the grid is in work items, not in blocks */
    KIND_GRAPH_LAUNCH,
    KIND_HOST_FUNC,
    KIND_SHAPE,
    KIND_CAPTURE_BEGIN,
    KIND_CAPTURE_END,
    KIND_GET_FUNCTION, /* *ARG_OUT is the handle of the kernel called ARG_NAME */
    KIND_GET_ALIAS,    /* *ARG_OUT is another handle of the kernel ARG_HANDLE */
    KIND_REGISTER,     /* ARG_HANDLE (a host stub) is the kernel called ARG_NAME */
    KIND_CONTEXT_NEW,  /* *ARG_OUT is a context on ARG_DEVICE; KIND_CONTEXT_CREATE also makes this context current */
    KIND_CONTEXT_CREATE,
    KIND_CONTEXT_SET,  /* ARG_HANDLE replaces the current context; if it is 0, the current context is popped */
    KIND_CONTEXT_PUSH, /* ARG_HANDLE becomes current, until it is popped or destroyed */
    KIND_CONTEXT_POP,
    KIND_DEVICE_SET, /* the thread's device becomes ARG_DEVICE (runtime), or the device of context ARG_HANDLE (HIP) */
    KIND_COPY,       /* copies, sets and prefetches: ARG_BYTES x ARG_HEIGHT x ARG_DEPTH x element_bytes */
    KIND_COPY_BATCH, /* ARG_COUNT copies, from lists of addresses and sizes */
    KIND_COPY_BATCH_3D, /* ARG_COUNT copies, from a list of structures of probe_row.block_words words; without
                           ARG_COUNT, one copy */
    KIND_WAIT,          /* the host waits for the device, or polls it */
    KIND_ALLOC, /* *ARG_OUT is the address of ARG_BYTES new bytes. With ARG_PITCH, the size is *ARG_PITCH x ARG_HEIGHT,
                   which is at least ARG_BYTES x ARG_HEIGHT */
    KIND_REGISTER_HOST,   /* ARG_BYTES of host memory at ARG_ADDRESS become pinned */
    KIND_FREE,            /* ARG_ADDRESS is freed, or no longer pinned */
    KIND_PHYSICAL_NEW,    /* *ARG_OUT is a handle of physical memory at ARG_LOCATION */
    KIND_PHYSICAL_RETAIN, /* *ARG_OUT is an existing handle, which now has one more reference */
    KIND_PHYSICAL_FREE,   /* releases ARG_HANDLE */
    KIND_MAP,             /* ARG_BYTES of physical memory ARG_HANDLE are mapped at ARG_ADDRESS */
    KIND_UNMAP,
    KIND_CONTEXT_DESTROY, /* ends a context, which frees the context's memory: ARG_HANDLE, the primary context of
                             ARG_DEVICE, or, for HIP, the thread's current device */
    KIND_CONTEXT_RELEASE, /* releases the primary context of ARG_DEVICE, which ends when its last holder releases it */
    KIND_TRIM,            /* a pool frees memory that it keeps in reserve */
    KIND_INIT,            /* initialization of the driver, which is the first call of a process */
    KIND_GRAPH_NEW,       /* *ARG_OUT is a graph: empty, or a copy of ARG_GRAPH */
    KIND_GRAPH_NODE,      /* adds a node to ARG_GRAPH. The node's kind is in probe_row.node or in ARG_NODE_TYPE. If the
                             node is a child graph, ARG_CHILD is this child graph */
    KIND_GRAPH_DESTROY,   /* ARG_GRAPH is destroyed */
    KIND_GRAPH_INSTANTIATE, /* *ARG_OUT is an executable graph made from ARG_GRAPH */
    KIND_GRAPH_UPLOAD,      /* the executable graph ARG_FUNC is uploaded */
    KIND_GRAPH_UPDATE,      /* ARG_FUNC is updated to ARG_GRAPH; if that fails, *ARG_OUT is the reason */
    KIND_GRAPH_SET,         /* changes the parameters of a node of ARG_FUNC */
    KIND_EXEC_DESTROY,      /* ARG_FUNC is destroyed */
    KIND_EVENT_RECORD,      /* the event ARG_HANDLE is recorded in ARG_STREAM */
    KIND_EVENT_WAIT,        /* ARG_STREAM waits for the event ARG_HANDLE */
    KIND_EVENT_DESTROY,     /* ARG_HANDLE is destroyed */
    KIND_STREAM_NEW,        /* *ARG_OUT is a stream */
    KIND_STREAM_DESTROY,    /* ARG_STREAM is destroyed */
    KIND_COLLECTIVE,  /* all ranks of the communicator ARG_HANDLE exchange ARG_BYTES elements of type ARG_FORMAT */
    KIND_MESSAGE,     /* like KIND_COLLECTIVE, but between two ranks */
    KIND_GROUP_BEGIN, /* later calls of this thread are enqueued when the group ends */
    KIND_GROUP_END,
    KIND_GROUP_DROP,   /* the group ends, and nothing is enqueued */
    KIND_COMM_NEW,     /* *ARG_OUT is a communicator; with ARG_COUNT, an array of them */
    KIND_COMM_DESTROY, /* ARG_HANDLE is destroyed */
    KIND_COMM_QUERY,   /* queries the communicator ARG_HANDLE; if the row has an ARG_OUT, *ARG_OUT is the communicator's
                          error */
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
    DIRECTION_H2D, /* arrays count as device memory */
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
    MEMORY_MANAGED,  /* in host or device memory, depending on the last access */
    MEMORY_PINNED,   /* host memory */
    MEMORY_PAGEABLE, /* host memory */
    MEMORY_HOST,     /* host memory, pinned or pageable */
    MEMORIES,
};

/* Kinds of allocations. */
enum holding {
    HOLDING_NONE,
    HOLDING_DEVICE,
    HOLDING_ARRAY,
    HOLDING_POOL, /* memory allocated in stream order */
    HOLDING_VMM,  /* physical memory, mapped or not */
    HOLDING_MANAGED,
    HOLDING_PINNED,
    HOLDING_REGISTERED, /* existing host memory that was pinned */
    HOLDING_IMPORTED,   /* memory imported from another process */
    HOLDING_EXTERNAL,   /* memory imported from another API */
    HOLDING_RESERVED,   /* reserved addresses */
    HOLDING_MAPPED,     /* mapped addresses; their memory is counted as HOLDING_VMM */
    HOLDING_GRAPH,      /* memory that a graph node allocates, and that exists only while the graph runs */
    HOLDING_POOL_OBJECT,
    HOLDING_MULTICAST,
    HOLDINGS,
};

/* Kinds of graph nodes. */
enum graph_node {
    NODE_OTHER, /* empty, event, semaphore, memory and conditional nodes */
    NODE_KERNEL,
    NODE_COPY,
    NODE_SET,
    NODE_HOST,
    GRAPH_NODES,
    NODE_UNSPECIFIED = GRAPH_NODES, /* the row does not specify the kind of node */
};

enum wait {
    WAIT_NONE,
    WAIT_STREAM,
    WAIT_CONTEXT,
    WAIT_EVENT,
    WAIT_VALUE, /* the stream waits, not the host */
    WAIT_COPY,  /* synchronous copies */
    WAIT_FREE,
    WAIT_POLL, /* does not block, but returns CUDA_ERROR_NOT_READY while the work is not done */
    WAITS,
};

#define PROBE_ROWS_MAX 1024 /* maximum number of rows per tool, a power of two */

/* Enumerations of memory types in CUDA and HIP. They share one lookup table (memory_of_type in kinds/copy.bpf.h). Each
 * value here is the offset of one enumeration in that table. */
enum memory_types {
    TYPES_CUDA = 0,    /* CUmemorytype: values up to 4 */
    TYPES_OPERAND = 8, /* CUmemcpy3DOperandType: values up to 2 */
    TYPES_HIP5 = 12,   /* hipMemoryType of HIP 5: values up to 4 */
    TYPES_HIP6 = 20,   /* hipMemoryType from HIP 6 on: values up to 11 */
    TYPES = 32,
};

struct probe_row {
    __u8 kind;
    __u8 layer;
    __u8 block_base;
    __u8 block_words;
    __u8 per_thread_stream; /* nonzero for _ptsz and _ptds functions: stream 0 is the calling thread's own stream */
    __u8 asynchronous;      /* the function returns before the work is done */
    __u8 element_bytes;     /* bytes per unit of ARG_BYTES */
    __u8 direction;         /* direction that the function implies; DIRECTION_UNKNOWN if it depends on the arguments */
    __u8 memory;            /* enum memory: kind of memory that the call allocates or frees */
    __u8 wait;
    __u8 array_elements; /* nonzero if ARG_BYTES counts elements when the source or destination is an array */
    __u8 holding;        /* enum holding: kind of allocation that the call makes or frees */
    __u8 out_offset;     /* offset from ARG_OUT to the result */
    __u8 pitch_offset;   /* offset from ARG_PITCH to the pitch */
    __u8 node;           /* enum graph_node */
    __u8 often;          /* nonzero if the function may have its own BPF program, because it is called very often */
    __u8 counted_as; /* enum probe_kind under which the call is counted; KIND_LAUNCH for all kinds of kernel launches */
    __u8 types;      /* enum memory_types: enumeration whose values ARG_DESTINATION_TYPE and ARG_SOURCE_TYPE have */
    struct operand args[ARGUMENTS];
};

static inline __attribute__((always_inline)) int operand_present(__u8 word)
{
    return word != WORD_ZERO && word != WORD_ONE;
}

/* Returns one of a launch's words. Has no branches, for the reason given at operand_part(). */
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

/* Returns a part of a word. Has no branches, because a call has up to twelve arguments, and the verifier walks every
 * path. The barriers keep clang from turning the shifts into branches. */
static inline __attribute__((always_inline)) unsigned long long operand_part(unsigned long long word, __u8 part)
{
    unsigned long long down = part >> 1 & 32, up = part & 32;
    __asm__("" : "+r"(down));
    __asm__("" : "+r"(up));
    return word >> down << up >> up;
}

#endif
