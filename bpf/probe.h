/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Where a probed function keeps its arguments, as data. A call is read into 16 words: the six argument registers, then
 * one block of memory (the stack slots behind the return address, or a structure that a register points to). An operand
 * names a word and which part of it. One program reads any row of the table. */
#ifndef GPUSNOOP_PROBE_H
#define GPUSNOOP_PROBE_H

#include <linux/types.h>

#define WORD_RDI 0
#define WORD_RSI 1
#define WORD_RDX 2
#define WORD_RCX 3
#define WORD_R8 4
#define WORD_R9 5
#define WORD_BLOCK 6 /* first word of the block */
#define BLOCK_WORDS_MAX 8
#define WORD_NONE 15 /* always 0 */
#define WORDS 16

enum part {
    PART_WHOLE,
    PART_LOW,  /* 32-bit arguments: the upper half of a register or slot is undefined (psABI 3.2.3) */
    PART_HIGH, /* dim3 by value: x and y share a register */
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
    ARGUMENTS,
};

enum probe_kind {
    KIND_NONE,
    KIND_LAUNCH,        /* one kernel, arguments in registers and stack slots or behind a config pointer */
    KIND_LAUNCH_LIST,   /* ARG_COUNT kernels, one structure of the block's size each */
    KIND_LAUNCH_LEGACY, /* block and shared memory were set before by KIND_SHAPE */
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
    KIND_CONTEXT_SET, /* ARG_HANDLE becomes current (set or pushed); 0 for none */
    KIND_CONTEXT_POP,
    KIND_DEVICE_SET, /* the thread's device becomes ARG_DEVICE (runtime) */
    KINDS,
};

enum probe_layer {
    LAYER_DRIVER,
    LAYER_RUNTIME,
};

#define PROBE_ROWS_MAX 256 /* of one tool; a power of two */

struct probe_row {
    __u8 kind;
    __u8 layer;
    __u8 block_base;
    __u8 block_words;
    __u8 per_thread_stream; /* _ptsz: stream 0 is the calling thread's own */
    __u8 zero[3];
    struct operand args[ARGUMENTS];
};

static inline __attribute__((always_inline)) unsigned long long operand_value(const unsigned long long words[WORDS],
                                                                              struct operand op)
{
    unsigned long long v = words[op.word & (WORDS - 1)];
    if (op.part == PART_HIGH)
        v >>= 32;
    return op.part == PART_WHOLE ? v : (__u32)v;
}

#endif
