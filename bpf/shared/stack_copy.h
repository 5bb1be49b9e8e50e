/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A piece of a stack, as it was when a stack's id was given out: what is needed to find callers without frame
 * pointers. */
#ifndef GPUSNOOP_STACK_COPY_H
#define GPUSNOOP_STACK_COPY_H

#include <linux/types.h>

#include "process.h"
#include "thread_registers.h"

#define STACK_COPY_BYTES 8192

struct stack_copy {
    __u32 type;  /* RECORD_STACK_COPY */
    __s32 stack; /* the id */
    struct image image;
    struct thread_registers registers; /* at the begin of the function that is called, so those of its caller */
    __u32 bytes;                       /* that follow, of the stack from its top on */
    __u32 zero;
};

#endif
