/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Stacks: a thread's registers, stacks found by frame pointers, and copies of a stack's bytes. */
#ifndef GPUSNOOP_STACK_H
#define GPUSNOOP_STACK_H

#include <linux/types.h>

#include "process.h"

/* A return address that was replaced by a return probe (ours or another tracer's). */
struct replaced_return {
    __u64 slot; /* address of its slot on the stack; 0: this entry is unused */
    __u64 address;
};

#define REPLACED_RETURNS 4 /* at most this many replaced addresses are recorded, innermost first */

/* Callee-saved registers. Only these have values that the callers need. */
#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#define KEPT_REGISTERS 6 /* rbp, rbx, r12 to r15 */
#else
#define KEPT_REGISTERS 12 /* x19 to x30; x30 holds the return address until the function makes a call */
#endif

/* User registers of a thread when it last entered the kernel, through a system call or an interrupt. */
struct thread_registers {
    __u32 process;
    __u32 thread;
    __u64 start_ns; /* start of the thread, CLOCK_BOOTTIME; 0: not filled in */
    __u64 ip, sp;
    __u64 kept[KEPT_REGISTERS];
    struct replaced_return replaced[REPLACED_RETURNS];
    char comm[16];
};

/* Stacks found by frame pointers (bpf/base/window.bpf.h). */
#define WINDOW_WORDS 256          /* number of words that are read from the stack */
#define WINDOW_FRAMES 64          /* maximum number of frames; deeper stacks are read by the kernel's stack walk */
#define WINDOW_STACKS 16384       /* number of slots in the table window_stacks */
#define WINDOW_SAMPLES 512        /* the same for tools that only sample stacks */
#define STACK_FAR_BYTES (8 << 20) /* maximum distance between two addresses of the same stack */

#define STACK_OF_WINDOW 0x200000 /* flag in a stack's id: the stack is in the table window_stacks */

struct window_stack {
    __u64 hash; /* hash of the addresses, which identifies the stack; 0: the slot is free */
    __u64 caller;
    __u64 depth;
    __u64 address[WINDOW_FRAMES]; /* return addresses, beginning with the caller's caller */
};

#define STACK_COPY_BYTES 8192

/* The point at which a thread's stack was copied. */
enum copied_at {
    COPIED_AT_ENTRY,  /* at function entry: registers are the caller's, and the return address is on top of the stack */
    COPIED_AT_RETURN, /* at the return address, just after a function's return */
    COPIED_ANYWHERE,
};
/* Flag: this is a further copy of a stack whose id was sent before. Such a copy is made every COPY_AGAIN_EVERY
 * calls. */
#define COPIED_AGAIN 0x100
#define COPY_AGAIN_EVERY 1024 /* a power of two */

/* Bytes of a stack, copied when the stack is given an id. With this copy, callers can be found even in code without
 * frame pointers. */
struct stack_copy {
    __u32 type;  /* RECORD_STACK_COPY */
    __s32 stack; /* the stack's id */
    struct image image;
    struct thread_registers registers;
    __u32 bytes; /* number of stack bytes that follow this struct, beginning at the stack pointer */
    __u32 at;    /* enum copied_at, ORed with COPIED_AGAIN if a copy of this stack was sent before */
};

#endif
