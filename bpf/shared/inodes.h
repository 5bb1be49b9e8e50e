/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_INODES_H
#define GPUSNOOP_INODES_H

#include <linux/types.h>

struct mapped_inode {
    __u64 process;
    __u64 address; /* where the mapping starts */
    __u64 kernel_inode;
    __u64 device; /* in the kernel's encoding, major << 20 | minor */
    __u64 inode;
    __u64 file_system; /* magic number */
};

#endif
