/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The calling process: its cgroups, files and name, and whether it is traced. */
#ifndef GPUSNOOP_PROCESS_BPF_H
#define GPUSNOOP_PROCESS_BPF_H

#include "base/common.bpf.h"
#include "shared/holding.h"
#include "shared/process.h"

#define MODE_TYPE 0170000 /* file type bits of i_mode, as in stat(2) */
#define MODE_PIPE 0010000
#define MODE_CHARACTER_DEVICE 0020000
#define MODE_SOCKET 0140000

/* Returns the open file of a descriptor, or NULL. */
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

/* The cgroups of a task, their paths, and the cgroup filter. */

const volatile __u32 v1_controller = CONTROLLER_NONE;
const volatile bool filter_cgroups = false;
const volatile bool filter_v1 = false; /* the ids in target_cgroups are from the v1 hierarchy */

PREALLOCATED_HASH_MAP(target_cgroups, 1024, u64, u8);

/* Cached results of under_target(), by cgroup id. They stay valid, because a cgroup never changes its parent. */
LRU_HASH_MAP(cgroup_verdicts, 16384, u64, u8);

#define SUBSYS(controller, id)                                                                                         \
    case controller:                                                                                                   \
        return bpf_core_enum_value(enum cgroup_subsys_id, id);

/* v1_controller is constant when the program is loaded, so the verifier removes all other cases. Otherwise, the program
 * could not be loaded on kernels that lack one of the other controllers. */
INLINE u32 v1_subsys(void)
{
    switch (v1_controller) {
        SUBSYS(CONTROLLER_MEMORY, memory_cgrp_id)
        SUBSYS(CONTROLLER_PIDS, pids_cgrp_id)
        SUBSYS(CONTROLLER_DEVICES, devices_cgrp_id)
        SUBSYS(CONTROLLER_CPU, cpu_cgrp_id)
        SUBSYS(CONTROLLER_CPUACCT, cpuacct_cgrp_id)
        SUBSYS(CONTROLLER_FREEZER, freezer_cgrp_id)
        SUBSYS(CONTROLLER_IO, io_cgrp_id)
    default:
        return bpf_core_enum_value(enum cgroup_subsys_id, cpuset_cgrp_id);
    }
}

/* Offset of the v1 controller's state in a css_set. */
INLINE u64 v1_offset(void)
{
    u64 states = bpf_core_field_offset(struct css_set, subsys);
    /* Without PIN, clang 19 folds the sum into a load instruction. libbpf rejects that load, because the array `subsys`
     * is larger in the kernel than in our declaration, which has 1 element. */
    PIN(states);
    return states + v1_subsys() * sizeof(void*);
}

INLINE struct kernfs_node* v2_node(struct task_struct* task)
{
    return task->cgroups->dfl_cgrp->kn;
}

INLINE struct kernfs_node* v1_node(struct task_struct* task)
{
    if (v1_controller == CONTROLLER_NONE)
        return 0;
    struct cgroup_subsys_state* state = (void*)kernel_word((void*)task->cgroups + v1_offset());
    return READ(state, cgroup, kn);
}

INLINE u64 node_id(struct kernfs_node* node)
{
    return node ? READ(node, id) : 0;
}

INLINE struct kernfs_node* node_parent(struct kernfs_node* node)
{
    if (bpf_core_field_exists(struct kernfs_node___6_15, __parent))
        return READ((struct kernfs_node___6_15*)node, __parent);
    return READ(node, parent);
}

INLINE u64 v2_id(struct task_struct* task)
{
    return task->cgroups->dfl_cgrp->kn->id;
}

INLINE u64 v1_id(struct task_struct* task)
{
    if (v1_controller == CONTROLLER_NONE)
        return 0;
    struct cgroup_subsys_state* state = *(struct cgroup_subsys_state**)((void*)task->cgroups + v1_offset());
    return state->cgroup->kn->id;
}

INLINE struct cgroups cgroups_of(struct task_struct* task)
{
    return (struct cgroups){.v2 = v2_id(task), .v1 = v1_id(task)};
}

struct path_walk {
    struct kernfs_node* node;
    struct cgroup_path* path;
};

/* Returns the id of the user who may create cgroups in a directory and choose their names, or 0 if only root may do
 * so. */
INLINE u32 naming_user(struct kernfs_node* node)
{
    const u32 writable_by_others = 0022;
    u32 uid = READ(node, iattr, ia_uid.val);
    return uid ? uid : READ(node, mode) & writable_by_others ? CGROUP_ANY_USER : 0;
}

/* Appends the name of a directory to the path and moves to its parent. Returns 1 when the path is complete or a name is
 * unreadable. If the path is too long, the names nearest to the root are kept, because they identify the owner, and
 * because users may add any number of levels below their cgroup. */
static long next_name(u32 index, struct path_walk* walk)
{
    struct kernfs_node* node = walk->node;
    struct cgroup_path* path = walk->path;
    struct kernfs_node* parent = node ? node_parent(node) : 0;
    u32 at = path->bytes;
    if (node && !parent)
        path->complete = 1; /* the root has no name */
    if (!parent)
        return 1;
    if (at > CGROUP_PATH_BYTES - 256) {
        at = 0;
        path->cut = index;
    }
    s64 length = kernel_text(path->names + at, 256, READ(node, name));
    if (length <= 0)
        return 1;
    path->bytes = at + length;
    walk->node = parent;
    return 0;
}

/* Separate from next_name(), because a single function for both tasks would need more stack than is available. */
static long next_user(u32 index, struct path_walk* walk)
{
    u32 user = walk->node ? naming_user(walk->node) : 0;
    if (user) {
        walk->path->delegated = index;
        walk->path->user = user;
    }
    walk->node = walk->node ? node_parent(walk->node) : 0;
    return !walk->node;
}

INLINE void read_cgroup_path(struct kernfs_node* node, struct cgroup_path* path)
{
    struct path_walk walk = {.node = node, .path = path};
    path->bytes = 0;
    path->complete = 0;
    path->cut = 0;
    path->delegated = 0;
    path->user = 0;
    if (HAS_LOOPS) {
        bpf_loop(CGROUP_DEPTH_MAX, next_name, &walk, 0);
        walk.node = node;
        bpf_loop(CGROUP_DEPTH_MAX, next_user, &walk, 0);
    } else {
        for (int i = 0; i < CGROUP_DEPTH_UNROLLED; i++)
            if (next_name(i, &walk))
                break;
        walk.node = node;
        for (int i = 0; i < CGROUP_DEPTH_UNROLLED; i++)
            if (next_user(i, &walk))
                break;
    }
}

OWN_FRAME bool under_target(u64 id, struct kernfs_node* node)
{
    u8 verdict = 0;
    for (int i = 0; i < CGROUP_WALK_MAX && node; i++) {
        u64 ancestor = node_id(node);
        if (bpf_map_lookup_elem(&target_cgroups, &ancestor)) {
            verdict = 1;
            break;
        }
        node = node_parent(node);
    }
    bpf_map_update_elem(&cgroup_verdicts, &id, &verdict, BPF_ANY);
    return verdict;
}

INLINE bool is_traced_cgroup(struct task_struct* task)
{
    if (!filter_cgroups)
        return true;
    u64 id = filter_v1 ? v1_id(task) : v2_id(task);
    u8* verdict = bpf_map_lookup_elem(&cgroup_verdicts, &id);
    return verdict ? *verdict : under_target(id, filter_v1 ? v1_node(task) : v2_node(task));
}

/* The calling process, and the filters by process, thread and name. */

const volatile __u32 target_tid = 0;
const volatile bool filter_pids = false;  /* set if the kernel cannot limit the attachment to target_pids */
const volatile __u64 target_comm[2] = {}; /* substring of the name of the thread or its group leader, zero-padded */
const volatile __u64 target_comm_mask[2] = {};

PREALLOCATED_HASH_MAP(target_pids, 1024, u32, u8);

/* Map key: a handle or an address in a process, or an id that our programs have assigned to an object of the
 * process. */
struct handle_number {
    struct image image;
    u64 number;
};

INLINE struct place_key place_key(struct image image, u32 epoch, u64 number)
{
    return (struct place_key){.prefix = WHOLE_PLACE, .image = image, .epoch = epoch, .number = number};
}

struct placed_image { /* an image, with its cgroups */
    struct image image;
    struct cgroups cgroups;
};

/* Images that have been sent to the front end. */
HASH_MAP(processes, 16384, struct placed_image, u8);

/* Reads the name of a task as two words. A BPF helper would take 70 ns longer. */
INLINE void read_comm(struct task_struct* task, u64 name[2])
{
    const u64* comm = (void*)task + bpf_core_field_offset(struct task_struct, comm);
    name[0] = comm[0];
    name[1] = comm[1];
}

/* True if target_comm occurs in a task's name. Compares at each position, by shifting the name one byte at a time. */
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

/* Like is_traced(), but ignores the filters by thread and name. Used for calls that affect all threads of a process,
 * such as lookups and registrations. */
INLINE bool is_traced_process(struct task_struct* task)
{
    if (filter_pids && !is_target(task))
        return false;
    return is_traced_cgroup(task);
}

INLINE bool is_traced(struct task_struct* task)
{
    if (target_tid && (u32)task->pid != target_tid)
        return false;
    if (!is_traced_process(task))
        return false;
    if (target_comm_mask[0])
        return comm_matches(task) || comm_matches(untrusted(task)->group_leader);
    return true;
}

/* Time since which no call was missed (CLOCK_BOOTTIME), set by the front end; 0: unknown. */
__u64 traced_since = 0;

/* True if the process started after tracing began, so that all of its calls were seen. */
INLINE bool is_fully_traced(struct task_struct* task)
{
    u64 since = traced_since;
    return since && untrusted(task)->group_leader->start_boottime > since;
}

INLINE struct image image_of(struct task_struct* task)
{
    struct task_struct* leader = untrusted(task)->group_leader;
    /* The exec count is a small number. The multiplier spreads it over all bits of the word. */
    return (struct image){.pid = task->tgid,
                          .serial = (u32)leader->start_boottime + (u32)task->self_exec_id * 0x9e3779b1u};
}

INLINE u32 innermost_pid(struct task_struct* task)
{
    struct pid* pid = untrusted(task)->group_leader->thread_pid;
    u32 level = READ(pid, level) & 63; /* at most 32 levels; the verifier of 6.1 needs a bound */
    PIN(level);
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
    /* Wake the reader now, because the files of a short-lived container disappear with it. */
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

/* Must not be called from an OWN_FRAME function, because introduce_placed() itself needs most of the stack. */
VERIFIED_ONCE int introduce_placed(u64 image, u64 v2, u64 v1)
{
    return send_if_new(image, v2, v1);
}

/* Replaces introduce_placed() on kernels that do not allow calls of global functions with preemption disabled. */
OWN_FRAME int introduce_guarded(u64 image, u64 v2, u64 v1)
{
    return send_if_new(image, v2, v1);
}

/* Sends the process of an image to the front end, once. Called when a row or other state of the process is created.
 * With -e, also called for each line whose process differs from that of the previous line on the same CPU. */
INLINE void introduce(const struct image* image, struct cgroups cgroups)
{
    if (GUARDED && !GUARDED_CALLS)
        introduce_guarded(*(const u64*)image, cgroups.v2, cgroups.v1);
    else
        introduce_placed(*(const u64*)image, cgroups.v2, cgroups.v1);
}

#endif
