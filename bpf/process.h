/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_PROCESS_H
#define GPUSNOOP_PROCESS_H

#include <linux/types.h>

/* One program image of one process: a reused pid is another one, and so is the same process after exec, whose
 * addresses and handles mean something else. */
struct image {
    __u32 pid;
    __u32 serial; /* folded from start time and exec count */
};

/* Taken when an image is first seen, for it may be gone when somebody asks. */
struct process_info {
    __u64 start_ns; /* CLOCK_BOOTTIME */
    __u64 cgroup_id;
    char comm[16]; /* of the group leader */
};

#endif
