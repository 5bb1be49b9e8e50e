/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Where the outermost call that a thread makes is kept until it returns (base/front_calls.bpf.h). */
#ifndef GPUSNOOP_FRONT_CALL_H
#define GPUSNOOP_FRONT_CALL_H

#include <linux/types.h>

#include "process.h"

#define FRONT_CALLS 2048 /* a power of two */
#define FRONT_CALL_WORDS 15

struct front_call {
    __u64 stack; /* the stack pointer at entry */
    __u64 entry_ns;
    __u64 word[FRONT_CALL_WORDS]; /* the program's own */
    __u64 owner;                  /* a thread; 0: free */
    __u64 shared;                 /* another thread whose place this would be has one of the next */
    struct image image;           /* of the owner: that of one that is killed here is freed by the front end */
};

#endif
