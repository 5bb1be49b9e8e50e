/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Processes, their cgroups, and the files that they have mapped. */
#ifndef GPUSNOOP_PROCESS_H
#define GPUSNOOP_PROCESS_H

#include <linux/types.h>

/* The cgroups of a caller, as ids (inode numbers) of cgroup directories. On hosts with cgroup v1 and on hybrid hosts,
 * containers are in v1 hierarchies. We read only one of these hierarchies. */
struct cgroups {
    __u64 v2;
    __u64 v1; /* id in the v1 hierarchy that we read; 0 if we read none */
};

/* Controllers whose v1 hierarchy can be read. src/who/cgroup_mounts.cpp has their mount names. */
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
/* Maximum number of levels of a cgroup path. It is high, because the names near the root are read last, and these names
 * identify the owner. */
#define CGROUP_DEPTH_MAX 1024
#define CGROUP_DEPTH_UNROLLED 32 /* the same limit on kernels before 5.17, which have no bpf_loop() */
#define CGROUP_WALK_MAX 256      /* cgroups up to this many levels below a target cgroup are traced, too */

/* Value of cgroup_path.user: a directory of the path is writable by others, so any user may create cgroups in it. */
#define CGROUP_ANY_USER 0xffffffff

/* Path of a cgroup. The names are ordered from the innermost directory outwards, each with a terminating zero. A name
 * may contain any byte except zero and slash. */
struct cgroup_path {
    __u32 bytes;
    __u32 complete;  /* nonzero if the names reach the root */
    __u32 cut;       /* number of innermost names that did not fit */
    __u32 delegated; /* number of innermost names, including `cut`, that a user other than root may have chosen */
    __u32 user;      /* user who may have chosen names, or CGROUP_ANY_USER; 0: only root */
    char names[CGROUP_PATH_BYTES];
};

/* A program image of a process. A reused pid and an exec each make a new image, because addresses and handles then have
 * a new meaning. */
struct image {
    __u32 pid;
    __u32 serial; /* derived from start time and exec count */
};

/* Sent when an image is first seen, or first seen in new cgroups, because the process and its cgroups may no longer
 * exist at the next report. */
struct process_record {
    __u32 type;   /* RECORD_PROCESS */
    __u32 ns_pid; /* pid in the innermost pid namespace; 0: unknown */
    struct image image;
    __u64 start_ns; /* start of the process, CLOCK_BOOTTIME */
    __u64 seen_ns;  /* time at which this record was sent, CLOCK_MONOTONIC */
    char comm[16];  /* name of the group leader */
    struct cgroups cgroups;
    struct cgroup_path v2;
    struct cgroup_path v1;
};

struct mapped_inode {
    __u64 process;
    __u64 address; /* start of the mapping */
    __u64 kernel_inode;
    __u64 device; /* in the kernel's encoding, major << 20 | minor */
    __u64 inode;
    __u64 file_system; /* magic number of the file system type */
};

#endif
