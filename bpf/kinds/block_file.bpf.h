/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Which file a blocked thread waits for: looked up once it is woken, as it is still in the system call. */
#ifndef GPUSNOOP_BLOCK_FILE_BPF_H
#define GPUSNOOP_BLOCK_FILE_BPF_H

#include "kinds/block_reason.bpf.h"
#include "shared/gap.h"

/* NULL where the system call has no descriptor, or the thread is in none. */
INLINE struct file* file_of_call(struct task_struct* task)
{
    struct pt_regs* regs = regs_of(task);
    if (!has_descriptor(SYSTEM_CALL_NUMBER(regs)) || IS_COMPATIBLE(task))
        return 0;
    return file_of_descriptor(task, SYSTEM_CALL_FIRST(regs));
}

/* The names are the directory entry's: no path is made, which may be long and takes locks. */
INLINE void read_names(struct file* of, char* file, char* folder)
{
    struct dentry* entry = of ? READ(of, f_path.dentry) : 0;
    if (!entry)
        return;
    kernel_text(file, FILE_NAME, READ(entry, d_name.name));
    kernel_text(folder, FOLDER_NAME, READ(entry, d_parent, d_name.name));
}

static __attribute__((noinline)) int read_file(struct task_struct* task, struct waker* waker)
{
    read_names(file_of_call(task), waker->file, waker->folder);
    return 0;
}

/* What the block of a thread was that ends now. */
INLINE void describe_block(struct task_struct* task, const struct thread_time* time, struct waker* waker)
{
    waker->user_stack = time->user_stack;
    waker->kernel_stack = time->kernel_stack;
    waker->fault = waker->part == TIME_FAULT ? time->fault : 0;
    waker->file[0] = waker->folder[0] = 0;
    if (waker->part == TIME_DISK)
        read_file(task, waker);
}

#endif
