/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Stacks by frame pointers, as bpf/base/window.bpf.h takes them. */
#ifndef GPUSNOOP_WINDOW_H
#define GPUSNOOP_WINDOW_H

#include <linux/types.h>

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

#endif
