/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* For how long threads that call wait for which files, looked up as they have a CPU again, still in the system call or
 * the page fault; and how much disks are asked for in their name. */
#ifndef GPUSNOOP_FILE_BLOCKS_BPF_H
#define GPUSNOOP_FILE_BLOCKS_BPF_H

#include "kinds/block_file.bpf.h"
#include "kinds/thread_time.bpf.h"
#include "shared/histogram.h"

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

/* Only its thread's CPU does so, in a bucket. */
static __attribute__((noinline)) int count_of_file(struct file* file, u32 place, u64 bucket, u64 sum)
{
    struct file_key key = {.place = place, .bucket = bucket};
    if (file) {
        key.inode = READ(file, f_inode, i_ino);
        key.device = READ(file, f_inode, i_sb, s_dev);
    }
    struct file_count* count = bpf_map_lookup_elem(&file_counts, &key) ?: new_file_count(&key, file);
    if (!count) {
        lose(LOSS_BLOCK, 1);
        return 0;
    }
    count->sum += sum;
    count->times++;
    return 0;
}

struct mapping {
    struct file* file;
    bool anonymous;
};

static long take_file(struct task_struct* task, struct vm_area_struct* vma, struct mapping* mapping)
{
    mapping->file = vma->vm_file;
    mapping->anonymous = !mapping->file;
    return 0;
}

/* Where a page fault goes on, which cannot go away meanwhile. Neither a file nor anonymous: not known, as another
 * thread maps memory, or the kernel has yet to let go of the lock of the last look from this CPU. */
INLINE struct mapping mapping_at(struct task_struct* task, u64 address)
{
    struct mapping mapping = {};
    if (address && bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_find_vma))
        bpf_find_vma(task, address, take_file, &mapping, 0);
    return mapping;
}

static __attribute__((noinline)) int count_file_wait(struct task_struct* task, struct thread_time* time, u32 place,
                                                     u64 ns)
{
    if (!is_in_page_fault(task))
        return count_of_file(file_of_call(task), place, histogram_bucket(ns), ns);
    const struct mapping mapping = mapping_at(task, time->fault);
    return mapping.anonymous ? 0 : count_of_file(mapping.file, place, histogram_bucket(ns), ns);
}

#define CLONED 2      /* 1 << BIO_CLONED (5.15 to 7.3): for the disks that a device is made of; it has been counted */
#define OPERATION 255 /* REQ_OP_MASK */

/* Only where files are asked for: all that disks of the machine are asked for pays. What is written back later is in no
 * thread's name. */
SEC("tp_btf/block_bio_queue")
int BPF_PROG(disk_asked, struct bio* bio)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!may_have_time(task))
        return 0;
    struct thread_state* thread = thread_state(task);
    struct thread_time* time = time_of(thread);
    u32 operation = bio->bi_opf & OPERATION;
    if (!time || bio->bi_flags & CLONED || operation > REQ_OP_WRITE)
        return 0;
    struct file* file = is_in_page_fault(task) ? mapping_at(task, time->fault).file : file_of_call(task);
    return count_of_file(file, thread->place - 1, operation == REQ_OP_READ ? FILE_READ : FILE_WRITTEN,
                         bio->bi_iter.bi_size);
}

#endif
