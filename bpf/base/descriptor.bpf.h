/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_DESCRIPTOR_BPF_H
#define GPUSNOOP_DESCRIPTOR_BPF_H

#include "base/common.bpf.h"

#define MODE_TYPE 0170000 /* of i_mode, as in stat(2) */
#define MODE_PIPE 0010000
#define MODE_CHARACTER_DEVICE 0020000
#define MODE_SOCKET 0140000

/* What a descriptor of a task stands for, or NULL. */
INLINE struct file* file_of_descriptor(struct task_struct* task, u64 descriptor)
{
    struct fdtable* table = READ(task, files, fdt);
    if (descriptor >= READ(table, max_fds))
        return 0;
    struct file** files = READ(table, fd);
    return (struct file*)kernel_word(&files[(u32)descriptor]);
}

INLINE struct inode* inode_of_descriptor(struct task_struct* task, u64 descriptor)
{
    struct file* file = file_of_descriptor(task, descriptor);
    return file ? READ(file, f_inode) : 0;
}

#endif
