/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Stacks: a thread's registers, windows read by frame pointers, and copies of a stack's bytes. */
#ifndef GPUSNOOP_STACK_H
#define GPUSNOOP_STACK_H

#include <linux/types.h>

#include "process.h"

/* A return address that a return probe (ours, or another tracer's) has taken off the stack. */
struct replaced_return {
    __u64 slot; /* where it was; 0: none */
    __u64 address;
};

#define REPLACED_RETURNS 4 /* the innermost */

/* Registers that calls preserve, for only they tell of callers. */
#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#define KEPT_REGISTERS 6 /* rbp, rbx, r12 to r15 */
#else
#define KEPT_REGISTERS 12 /* x19 to x30: the last one is the return address, as long as no call has changed it */
#endif

/* What a thread had in its registers when it entered the kernel last: in a system call that it is in still, or at an
 * interrupt. */
struct thread_registers {
    __u32 process;
    __u32 thread;
    __u64 start_ns; /* CLOCK_BOOTTIME */
    __u64 ip, sp;
    __u64 kept[KEPT_REGISTERS];
    struct replaced_return replaced[REPLACED_RETURNS];
    char comm[16];
};

/* Stacks by frame pointers, as bpf/base/window.bpf.h takes them. */
#define WINDOW_WORDS 256 /* of the stack that are read */
#define WINDOW_FRAMES 64 /* deeper stacks are the kernel's to walk */
#define WINDOW_STACKS 16384
#define WINDOW_SAMPLES 512        /* of a tool that takes stacks of some calls only */
#define STACK_FAR_BYTES (8 << 20) /* further up, nothing is taken for a frame of the same stack */

#define STACK_OF_WINDOW 0x200000 /* in a stack's id: it is in the table of these */

struct window_stack {
    __u64 hash; /* of its addresses, which makes it known; 0: the place is free */
    __u64 caller;
    __u64 depth;
    __u64 address[WINDOW_FRAMES]; /* return addresses from the caller's caller on */
};

#define STACK_COPY_BYTES 8192

/* Where the thread is. */
enum copied_at {
    COPIED_AT_ENTRY,  /* at the begin of a function: the registers are its caller's, the return address is on top */
    COPIED_AT_RETURN, /* where a function has just returned to */
    COPIED_ANYWHERE,
};
/* With one of these: the id is known, and has been seen so many times since. */
#define COPIED_AGAIN 0x100
#define COPY_AGAIN_EVERY 1024 /* a power of two */

/* Bytes of a stack, copied when its id was assigned: enough to find callers without frame pointers. */
struct stack_copy {
    __u32 type;  /* RECORD_STACK_COPY */
    __s32 stack; /* the id */
    struct image image;
    struct thread_registers registers;
    __u32 bytes; /* that follow, of the stack from its top on */
    __u32 at;    /* enum copied_at, and COPIED_AGAIN */
};

#endif
