/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Who is calling, and whether anybody asked for them. */
#ifndef GPUSNOOP_PROCESS_BPF_H
#define GPUSNOOP_PROCESS_BPF_H

#include "base/cgroup.bpf.h"
#include "base/common.bpf.h"
#include "shared/process.h"

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

/* A handle or an address of a process, or a number given to one here. */
struct handle_number {
    struct image image;
    u64 number;
};

struct placed_image {
    struct image image;
    struct cgroups cgroups;
};

/* Images that have been sent. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct placed_image);
    __type(value, u8);
} processes SEC(".maps");

/* The name of a task as two words. A helper that copies it takes 70 ns more. */
INLINE void read_comm(struct task_struct* task, u64 name[2])
{
    const u64* comm = (void*)task + bpf_core_field_offset(struct task_struct, comm);
    name[0] = comm[0];
    name[1] = comm[1];
}

/* True where the wanted part begins at any of the 16 places of a task's name. The name is two words, shifted a byte at
 * a time. */
INLINE bool comm_matches(struct task_struct* task)
{
    u64 name[2];
    read_comm(task, name);
    for (int i = 0; i < 16; i++) {
        if ((name[0] & target_comm_mask[0]) == target_comm[0] && (name[1] & target_comm_mask[1]) == target_comm[1])
            return true;
        name[0] = name[0] >> 8 | name[1] << 56;
        name[1] >>= 8;
    }
    return false;
}

INLINE bool is_target(struct task_struct* task)
{
    u32 pid = task->tgid;
    return bpf_map_lookup_elem(&target_pids, &pid);
}

/* What a process does before it is launched from (lookups, registrations) counts for all of its threads. */
INLINE bool wanted_process(struct task_struct* task)
{
    if (filter_pids && !is_target(task))
        return false;
    return wanted_cgroup(task);
}

INLINE bool wanted(struct task_struct* task)
{
    if (target_tid && (u32)task->pid != target_tid)
        return false;
    if (!wanted_process(task))
        return false;
    if (target_comm_mask[0])
        return comm_matches(task) || comm_matches(untrusted(task)->group_leader);
    return true;
}

/* When tracing began (CLOCK_BOOTTIME); 0: not yet. */
__u64 traced_since = 0;

/* The process is younger than that: all of its calls have been seen. */
INLINE bool seen_whole(struct task_struct* task)
{
    u64 since = traced_since;
    return since && untrusted(task)->group_leader->start_boottime > since;
}

INLINE struct image image_of(struct task_struct* task)
{
    struct task_struct* leader = untrusted(task)->group_leader;
    /* The multiplier spreads exec counts, which are small, over the word. */
    return (struct image){.pid = task->tgid,
                          .serial = (u32)leader->start_boottime + (u32)task->self_exec_id * 0x9e3779b1u};
}

INLINE u32 innermost_pid(struct task_struct* task)
{
    struct pid* pid = untrusted(task)->group_leader->thread_pid;
    u32 level = READ(pid, level) & 63; /* there are 32: 6.1 adds no number without a bound to a pointer */
    barrier_var(level);
    u64 offset = bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid) +
                 bpf_core_field_offset(struct upid, nr);
    return kernel_word((void*)pid + offset);
}

INLINE int send_process(const struct placed_image* placed)
{
    struct process_record* record = placed ? bpf_ringbuf_reserve(&ring, sizeof(*record), 0) : 0;
    if (!record) {
        lose(LOSS_PROCESS, 1);
        return 0;
    }
    struct task_struct* task = untrusted(bpf_get_current_task_btf());
    record->type = RECORD_PROCESS;
    record->ns_pid = innermost_pid(task);
    record->image = placed->image;
    record->start_ns = task->group_leader->start_boottime;
    record->seen_ns = bpf_ktime_get_ns();
    read_comm(task->group_leader, (u64*)record->comm);
    record->cgroups = placed->cgroups;
    read_cgroup_path(v2_node(task), &record->v2);
    read_cgroup_path(v1_node(task), &record->v1);
    /* At once: a short-lived container takes its files with it. */
    bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
    u8 yes = 1;
    bpf_map_update_elem(&processes, placed, &yes, BPF_ANY);
    return 0;
}

INLINE int send_if_new(u64 image, u64 v2, u64 v1)
{
    struct placed_image placed = {.cgroups = {.v2 = v2, .v1 = v1}};
    *(u64*)&placed.image = image;
    if (!bpf_map_lookup_elem(&processes, &placed))
        send_process(&placed);
    return 0;
}

/* Verified once. Not called below another function: before 6.13 the stacks of all frames together are 512 bytes. */
__attribute__((noinline)) int introduce_placed(u64 image, u64 v2, u64 v1)
{
    return send_if_new(image, v2, v1);
}

/* For kernels that refuse global functions under the guard. */
static __attribute__((noinline)) int introduce_guarded(u64 image, u64 v2, u64 v1)
{
    return send_if_new(image, v2, v1);
}

/* Sends the process of an image to the front end, once. Called for each new row, not for each call; but for each line
 * of -e. */
INLINE void introduce(const struct image* image, struct cgroups cgroups)
{
    if (GUARDED && !GUARDED_CALLS)
        introduce_guarded(*(const u64*)image, cgroups.v2, cgroups.v1);
    else
        introduce_placed(*(const u64*)image, cgroups.v2, cgroups.v1);
}

#endif
