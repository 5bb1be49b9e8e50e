/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Processes, their cgroups, and the files that they map. */
#ifndef GPUSNOOP_PROCESS_H
#define GPUSNOOP_PROCESS_H

#include <linux/types.h>

/* Where a call was made from: ids (inode numbers) of cgroup directories. Hosts with cgroup v1, and hybrid ones, have
 * their containers in v1 hierarchies, of which one stands for all. */
struct cgroups {
    __u64 v2;
    __u64 v1; /* 0 where no v1 hierarchy is looked at */
};

/* Controllers whose v1 hierarchy can be looked at, by the names that mounts give them in src/who/cgroup_mounts.cpp. */
enum cgroup_controller {
    CONTROLLER_NONE,
    CONTROLLER_MEMORY,
    CONTROLLER_PIDS,
    CONTROLLER_DEVICES,
    CONTROLLER_CPU,
    CONTROLLER_CPUACCT,
    CONTROLLER_FREEZER,
    CONTROLLER_IO,
    CONTROLLER_CPUSET,
};

#define CGROUP_PATH_BYTES 2048
#define CGROUP_DEPTH_MAX 1024    /* levels up to the root, whose names say whose a cgroup is */
#define CGROUP_DEPTH_UNROLLED 32 /* the same before 5.17, which has no bpf_loop */
#define CGROUP_WALK_MAX 256      /* levels below a cgroup that belong to it */

#define CGROUP_ANY_USER 0xffffffff /* may create cgroups there: others than the owner have write permission */

/* Names from the innermost directory outwards, each with its zero. A name may hold anything but those and slashes. */
struct cgroup_path {
    __u32 bytes;
    __u32 complete;  /* they reach the root */
    __u32 cut;       /* innermost names that are missing: they did not fit */
    __u32 delegated; /* innermost names, those included, below a directory that users other than root may create in */
    __u32 user;      /* the user who may, or CGROUP_ANY_USER; 0: none but root */
    char names[CGROUP_PATH_BYTES];
};

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

struct mapped_inode {
    __u64 process;
    __u64 address; /* where the mapping starts */
    __u64 kernel_inode;
    __u64 device; /* in the kernel's encoding, major << 20 | minor */
    __u64 inode;
    __u64 file_system; /* magic number */
};

#endif
