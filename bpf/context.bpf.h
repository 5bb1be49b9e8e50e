/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Which device a thread works on: contexts are made on a device, and each thread has a current one. Contexts and
 * threads from before attach are unknown, and stay so until the thread switches. */
#ifndef GPUSNOOP_CONTEXT_BPF_H
#define GPUSNOOP_CONTEXT_BPF_H

#include "names.bpf.h"
#include "thread.bpf.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, struct handle_key);
    __type(value, u32); /* ordinal + 1 */
} contexts SEC(".maps");

INLINE void context_made(const struct image* image, u64 context, u32 device)
{
    struct handle_key key = {.image = *image, .handle = context};
    u32 ordinal = device + 1;
    if (bpf_map_update_elem(&contexts, &key, &ordinal, BPF_ANY))
        lose(LOSS_STATE, 1);
}

INLINE void context_current(const struct image* image, struct thread_state* thread, u64 context)
{
    struct handle_key key = {.image = *image, .handle = context};
    u32* ordinal = bpf_map_lookup_elem(&contexts, &key);
    thread->device = ordinal ? *ordinal : 0;
}

#endif
