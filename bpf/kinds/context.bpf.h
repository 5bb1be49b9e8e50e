/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Which device a thread works on: contexts are made on a device, and each thread has a current one. Contexts and
 * threads from before attach are unknown, and stay so until the thread switches. */
#ifndef GPUSNOOP_CONTEXT_BPF_H
#define GPUSNOOP_CONTEXT_BPF_H

#include "base/share.bpf.h"
#include "base/thread.bpf.h"
#include "kinds/names.bpf.h"
#include "shared/call.h"

#define HIP_DEVICE_UNTOLD (DEVICE_UNKNOWN + 1) /* the thread has set one, nobody knows which */

struct context {
    u32 device; /* ordinal + 1 */
    u32 number; /* no other context of any process has it: handles are used again */
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct handle_number);
    __type(value, struct context);
} contexts SEC(".maps");

__u32 contexts_made = 0;

INLINE void context_made(const struct image* image, u64 handle, u32 device)
{
    struct handle_number key = {.image = *image, .number = handle};
    struct context new = {.device = device + 1, .number = __sync_fetch_and_add(&contexts_made, 1) + 1};
    /* So that the front end cleans up when the process exits, even if it makes no call that counts. */
    introduce(image, cgroups_of(untrusted(bpf_get_current_task_btf())));
    if (PUT_SHARED(&contexts, SHARED_CONTEXTS, &key, &new))
        lose(LOSS_STATE, 1);
}

INLINE struct context* context_of(const struct image* image, u64 handle)
{
    struct handle_number key = {.image = *image, .number = handle};
    return bpf_map_lookup_elem(&contexts, &key);
}

INLINE void context_current(const struct image* image, struct thread_state* thread, u64 handle)
{
    struct context* context = context_of(image, handle);
    *device_by(thread, LAYER_DRIVER) = context ? context->device : 0;
    thread->context = handle;
}

/* A device is all that HIP has of contexts: hipCtxCreate() returns it, hipCtxPopCurrent() and hipCtxDestroy() leave the
 * thread's as it is and free nothing (hip_context.cpp of ROCm 5.7 to 7). */
INLINE void hip_device_current(const struct image* image, struct thread_state* thread, u64 handle)
{
    struct context* context = context_of(image, handle);
    *device_by(thread, LAYER_HIP) = context ? context->device : HIP_DEVICE_UNTOLD;
}

/* Ordinal + 1: what the thread has set, or the first device. 0 unknown. */
INLINE u32 hip_device_of(struct task_struct* task, struct thread_state* thread)
{
    u32 device = *device_by(thread, LAYER_HIP);
    if (!device && seen_whole(task))
        return 1;
    return device < HIP_DEVICE_UNTOLD ? device : 0;
}

INLINE void context_push(const struct image* image, struct thread_state* thread, u64 handle)
{
    if (thread->depth < CONTEXTS_BELOW)
        thread->below[opaque(thread->depth) & (CONTEXTS_BELOW - 1)] = thread->context;
    thread->depth++;
    context_current(image, thread, handle);
}

INLINE void context_pop(const struct image* image, struct thread_state* thread)
{
    u64 handle = 0;
    if (thread->depth && --thread->depth < CONTEXTS_BELOW)
        /* Compilers from 22 on know the depth from the line above, and leave the mask out that 6.1 wants to see. */
        handle = thread->below[opaque(thread->depth) & (CONTEXTS_BELOW - 1)];
    context_current(image, thread, handle);
}

/* What ends with all that the thread allocates now; of HIP the device, which has its ordinal + 1 for a handle. Null: it
 * is not known. */
INLINE struct context* context_of_memory(const struct image* image, struct task_struct* task, u32 layer)
{
    struct thread_state* thread = thread_state(task);
    if (thread)
        begin_image(thread, image);
    u64 handle = !thread ? 0 : layer == LAYER_HIP ? hip_device_of(task, thread) : thread->context;
    if (!handle)
        return 0;
    if (layer == LAYER_HIP && !context_of(image, handle))
        context_made(image, handle, handle - 1);
    return context_of(image, handle);
}

/* The context of a device that all of a process shares, and how often it was asked for. It stays in the table when the
 * context ends, for another thread may be about to retain it again. */
struct primary {
    u64 context;
    u64 holders;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct handle_number); /* of the device's number */
    __type(value, struct primary);
} primaries SEC(".maps");

INLINE void primary_retained(const struct image* image, u64 handle, u32 device)
{
    struct handle_number key = {.image = *image, .number = device};
    struct primary* primary = bpf_map_lookup_elem(&primaries, &key);
    if (!primary) {
        struct primary new = {};
        bpf_map_update_elem(&primaries, &key, &new, BPF_NOEXIST); /* another thread may be first */
        primary = bpf_map_lookup_elem(&primaries, &key);
    }
    struct context* context = context_of(image, handle);
    if (!context || context->device != device + 1) /* the handle was that of another context, whose end was missed */
        context_made(image, handle, device);
    if (!primary) {
        lose(LOSS_STATE, 1);
        return;
    }
    primary->context = handle;
    __sync_fetch_and_add(&primary->holders, 1);
}

#endif
