/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Which cgroup a task is in, what it is called, and whether it is one that was asked for. */
#ifndef GPUSNOOP_CGROUP_BPF_H
#define GPUSNOOP_CGROUP_BPF_H

#include "base/common.bpf.h"
#include "shared/cgroup.h"

const volatile __u32 v1_controller = CONTROLLER_NONE;
const volatile bool filter_cgroups = false;
const volatile bool filter_v1 = false; /* target_cgroups are of the v1 hierarchy */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, u64);
    __type(value, u8);
} target_cgroups SEC(".maps");

/* What the walk to the root has found: a cgroup never changes its parent. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, u64);
    __type(value, u8);
} cgroup_verdicts SEC(".maps");

#define SUBSYS(controller, id)                                                                                         \
    case controller:                                                                                                   \
        return bpf_core_enum_value(enum cgroup_subsys_id, id);

/* The controller is known when the program is loaded, so a kernel without one of the others does not mind. */
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

/* Of the state of the v1 hierarchy in a css_set. */
INLINE u64 v1_offset(void)
{
    u64 states = bpf_core_field_offset(struct css_set, subsys);
    /* Or clang 19 makes one load of both, which libbpf refuses: the array is larger in the kernel. */
    barrier_var(states);
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

/* The user who may create cgroups in a directory and so chooses their names; 0: root alone. */
INLINE u32 naming_user(struct kernfs_node* node)
{
    const u32 writable_by_others = 0022;
    u32 uid = READ(node, iattr, ia_uid.val);
    return uid ? uid : READ(node, mode) & writable_by_others ? CGROUP_ANY_USER : 0;
}

/* Adds the name of a directory and goes to the one that it is in; 1 at the end. The names that are nearest to the root
 * are kept: they say whose the cgroup is, and users may add levels without limit below theirs. */
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

/* A walk of its own: both would need more stack than is left. */
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
    if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)) { /* 5.17, e6f2dd0f8067 */
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

static __attribute__((noinline)) bool under_target(u64 id, struct kernfs_node* node)
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

INLINE bool wanted_cgroup(struct task_struct* task)
{
    if (!filter_cgroups)
        return true;
    u64 id = filter_v1 ? v1_id(task) : v2_id(task);
    u8* verdict = bpf_map_lookup_elem(&cgroup_verdicts, &id);
    return verdict ? *verdict : under_target(id, filter_v1 ? v1_node(task) : v2_node(task));
}

#endif
