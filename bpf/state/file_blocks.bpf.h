/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* For how long threads that call wait for which files: looked up as they have a CPU again, still in the system call. */
#ifndef GPUSNOOP_FILE_BLOCKS_BPF_H
#define GPUSNOOP_FILE_BLOCKS_BPF_H

#include "shared/histogram.h"
#include "state/block_file.bpf.h"
#include "state/thread_time.bpf.h"

const volatile bool count_files = false;

struct {
    __uint(type, BPF_MAP_TYPE_HASH); /* of memory that is there, as in wakers.bpf.h */
    __uint(max_entries, 16384);      /* 1 where they are not asked for */
    __type(key, struct file_key);
    __type(value, struct file_count);
} file_counts SEC(".maps");

INLINE struct file_count* new_file_count(const struct file_key* key, struct file* file)
{
    static const struct file_count none = {};
    bpf_map_update_elem(&file_counts, key, &none, BPF_NOEXIST);
    struct file_count* count = bpf_map_lookup_elem(&file_counts, key);
    if (count)
        read_names(file, count->file, count->folder);
    return count;
}

static __attribute__((noinline)) int count_file(struct task_struct* task, u32 place, u64 ns)
{
    struct file* file = file_of_call(task);
    struct file_key key = {.place = place, .bucket = histogram_bucket(ns)};
    if (file) {
        key.inode = BPF_CORE_READ(file, f_inode, i_ino);
        key.device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
    }
    struct file_count* count = bpf_map_lookup_elem(&file_counts, &key) ?: new_file_count(&key, file);
    if (!count) {
        lose(LOSS_BLOCK, 1);
        return 0;
    }
    count->ns += ns; /* only its thread's CPU does so */
    count->times++;
    return 0;
}

#endif
