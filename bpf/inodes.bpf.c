/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Kernel inodes of the files that a process has mapped. A uprobe is attached to the real inode, but on overlayfs,
 * stat() reports another inode. With the inodes from stat(), a file with two paths would be probed twice, and its calls
 * would be counted twice. */
#include "shared/kernel.h"

#include <bpf/bpf_helpers.h>

#include "shared/process.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("iter/task_vma")
int mapped_inodes(struct bpf_iter__task_vma* ctx)
{
    /* Each pointer is read only once, because the verifier does not know that a second read yields the same pointer. */
    struct vm_area_struct* vma = ctx->vma;
    struct task_struct* task = ctx->task;
    if (!task || !vma)
        return 0;
    struct file* file = vma->vm_file;
    if (!file)
        return 0;
    struct inode* inode = file->f_inode;
    struct mapped_inode mapped = {
        .process = task->tgid,
        .address = vma->vm_start,
        .kernel_inode = (u64)inode,
        .device = inode->i_sb->s_dev,
        .inode = inode->i_ino,
        .file_system = inode->i_sb->s_magic,
    };
    bpf_seq_write(ctx->meta->seq, &mapped, sizeof(mapped));
    return 0;
}
