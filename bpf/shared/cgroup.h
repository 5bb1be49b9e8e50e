/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_CGROUP_H
#define GPUSNOOP_CGROUP_H

#include <linux/types.h>

/* Where a call was made from: ids (inode numbers) of cgroup directories. Hosts with cgroup v1, and hybrid ones, have
 * their containers in v1 hierarchies, of which one stands for all. */
struct cgroups {
    __u64 v2;
    __u64 v1; /* 0 where no v1 hierarchy is looked at */
};

/* Controllers whose v1 hierarchy can be looked at, by the names that mounts give them in src/cgroup.cpp. */
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

#endif
