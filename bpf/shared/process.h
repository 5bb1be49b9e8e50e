/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_PROCESS_H
#define GPUSNOOP_PROCESS_H

#include <linux/types.h>

#include "cgroup.h"

/* One program image of one process: a reused pid is another one, and so is the same process after exec, whose
 * addresses and handles mean something else. */
struct image {
    __u32 pid;
    __u32 serial; /* folded from start time and exec count */
};

/* Sent when an image is first seen in its cgroups, for both may be gone when somebody asks. */
struct process_record {
    __u32 type;   /* RECORD_PROCESS */
    __u32 ns_pid; /* in the innermost pid namespace; 0 unknown */
    struct image image;
    __u64 start_ns; /* CLOCK_BOOTTIME */
    __u64 seen_ns;  /* CLOCK_MONOTONIC */
    char comm[16];  /* of the group leader */
    struct cgroups cgroups;
    struct cgroup_path v2;
    struct cgroup_path v1;
};

#endif
