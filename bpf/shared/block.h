/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Blocks of threads that call, outside of calls, by where they are. */
#ifndef GPUSNOOP_BLOCK_H
#define GPUSNOOP_BLOCK_H

#include "thread_time.h"

#define BLOCK_FRAMES 64

struct block_key {
    __u32 place; /* of the thread, in the table of threads */
    __u32 part;
    __s32 user; /* ids of stacks; negative: not known */
    __s32 kernel;
};

struct block_count {
    __u64 ns;
    __u64 times;
};

#endif
