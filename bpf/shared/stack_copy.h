/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A piece of a stack, as it was when a stack's id was given out: what is needed to find callers without frame
 * pointers. */
#ifndef GPUSNOOP_STACK_COPY_H
#define GPUSNOOP_STACK_COPY_H

#include <linux/types.h>

#include "process.h"
#include "thread_registers.h"

#define STACK_COPY_BYTES 8192

/* Where the thread is. */
enum copied_at {
    COPIED_AT_ENTRY,  /* at the begin of a function: the registers are its caller's, the return address is on top */
    COPIED_AT_RETURN, /* where a function has just returned to */
    COPIED_ANYWHERE,
};
/* With one of these: the id is known, and has been seen so many times since. */
#define COPIED_AGAIN 0x100
#define COPIED_AGAIN_EACH 1024 /* a power of two */

struct stack_copy {
    __u32 type;  /* RECORD_STACK_COPY */
    __s32 stack; /* the id */
    struct image image;
    struct thread_registers registers;
    __u32 bytes; /* that follow, of the stack from its top on */
    __u32 at;    /* enum copied_at, and COPIED_AGAIN */
};

#endif
