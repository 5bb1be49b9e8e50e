/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Who is calling, and whether anybody asked for them. */
#ifndef GPUSNOOP_PROCESS_BPF_H
#define GPUSNOOP_PROCESS_BPF_H

#include "common.bpf.h"
#include "process.h"

const volatile __u32 target_tid = 0;
const volatile bool filter_pids = false;  /* where the attach itself could not be limited to them */
const volatile __u64 target_comm[2] = {}; /* part of a name, zero-padded: matches anywhere in it */
const volatile __u64 target_comm_mask[2] = {};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, u32);
    __type(value, u8);
} target_pids SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, struct image);
    __type(value, struct process_info);
} processes SEC(".maps");

/* True where the wanted part begins at any of the 16 places of a task's name. The name is two words, shifted a byte at
 * a time. */
INLINE bool comm_matches(const char* comm)
{
    u64 name[2];
    if (bpf_probe_read_kernel(name, sizeof(name), comm))
        return false;
    for (int i = 0; i < 16; i++) {
        if ((name[0] & target_comm_mask[0]) == target_comm[0] && (name[1] & target_comm_mask[1]) == target_comm[1])
            return true;
        name[0] = name[0] >> 8 | name[1] << 56;
        name[1] >>= 8;
    }
    return false;
}

/* What a process does before it is launched from (lookups, registrations) counts for all of its threads. */
INLINE bool wanted_process(struct task_struct* task)
{
    if (!filter_pids)
        return true;
    u32 pid = task->tgid;
    return bpf_map_lookup_elem(&target_pids, &pid) != 0;
}

INLINE bool wanted(struct task_struct* task)
{
    if (target_tid && (u32)task->pid != target_tid)
        return false;
    if (!wanted_process(task))
        return false;
    if (target_comm_mask[0])
        return comm_matches(task->comm) || comm_matches(task->group_leader->comm);
    return true;
}

INLINE struct image image_of(struct task_struct* task)
{
    struct task_struct* leader = task->group_leader;
    /* The multiplier spreads exec counts, which are small, over the word. */
    return (struct image){.pid = task->tgid,
                          .serial = (u32)leader->start_boottime + (u32)task->self_exec_id * 0x9e3779b1u};
}

/* Keeps who an image is. Called when it gets its first row, not per call. */
INLINE void remember_process(struct task_struct* task, const struct image* image)
{
    if (bpf_map_lookup_elem(&processes, image))
        return;
    struct process_info info = {
        .start_ns = task->group_leader->start_boottime,
        .cgroup_id = bpf_get_current_cgroup_id(),
    };
    bpf_probe_read_kernel(info.comm, sizeof(info.comm), task->group_leader->comm);
    if (bpf_map_update_elem(&processes, image, &info, BPF_ANY))
        lose(LOSS_PROCESS, 1);
}

#endif
