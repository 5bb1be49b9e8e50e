/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Blocks of threads that call, outside of calls, by where they are. */
#ifndef GPUSNOOP_BLOCK_H
#define GPUSNOOP_BLOCK_H

#include "histogram.h"
#include "thread_time.h"

#define BLOCK_FRAMES 64

struct block_key {
    __u32 place; /* of the thread, in the table of threads */
    __u32 part;
    __s32 user; /* ids of stacks; negative: not known */
    __s32 kernel;
};

struct block_count {
    __u64 sum; /* ns */
    __u64 times;
};

#define FILE_NAME 48
#define FOLDER_NAME 32

/* Of one file: blocks, by how long they were; and what disks are asked for. */
struct file_key {
    __u64 inode;
    __u32 device; /* of the kernel's super block; with the inode 0: not known */
    __u32 place;
    __u64 bucket; /* of ns; or FILE_READ, FILE_WRITTEN */
};

#define FILE_READ HISTOGRAM_BUCKETS
#define FILE_WRITTEN (HISTOGRAM_BUCKETS + 1)

struct file_count {
    __u64 sum; /* ns; or bytes */
    __u64 times;
    char file[FILE_NAME]; /* as much of its name as there is room for; "": not known */
    char folder[FOLDER_NAME];
};

#endif
