/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Streams that are created and destroyed, and contexts that end. Their handles are reused. */
#ifndef GPUSNOOP_LIFE_BPF_H
#define GPUSNOOP_LIFE_BPF_H

#include "base/wanted.bpf.h"
#include "kinds/context.bpf.h"
#include "kinds/stream.bpf.h"

enum life_word {
    LIFE_ARGUMENT = FOLLOWED_ROW + 1,
    LIFE_CAPTURE, /* that a stream is part of: its number */
};

INLINE u32 life_argument(const volatile struct probe_row* row)
{
    switch (row->kind) {
    case KIND_STREAM_NEW:
        return ARG_OUT;
    case KIND_STREAM_GONE:
        return ARG_STREAM;
    }
    return has_argument(row, ARG_HANDLE) ? ARG_HANDLE : ARG_DEVICE;
}

INLINE int life_entry_body(struct pt_regs* ctx)
{
    struct followed at;
    if (!follow_call(ctx, PART_STATE, &at))
        return 1;
    u64 argument = register_argument(ctx, at.row, life_argument(at.row));
    struct image image = image_of(at.task);
    at.call->word[LIFE_ARGUMENT] = argument;
    at.call->word[LIFE_CAPTURE] = at.row->kind == KIND_STREAM_GONE ? stream_leaves(&image, argument) : 0;
    return 0;
}

/* The handle of the context that ends by this call, 0 if that is unknown. False: none ends. */
INLINE bool ending_context(const struct followed* at, const struct image* image, u64 argument, u64* handle)
{
    const volatile struct probe_row* row = at->row;
    begin_image(at->thread, image);
    *handle = row->layer == LAYER_HIP ? hip_device_of(at->task, at->thread) : argument;
    if (row->layer == LAYER_HIP || has_argument(row, ARG_HANDLE))
        return true;
    struct handle_number key = {.image = *image, .number = argument};
    struct primary* primary = bpf_map_lookup_elem(&primaries, &key);
    *handle = primary && primary->holders ? primary->context : 0;
    if (row->kind == KIND_MEMORY_GONE)
        return true;
    /* A process that began before tracing did may have others that hold it. */
    return primary && seen_whole(at->task) && __sync_fetch_and_add(&primary->holders, -1) == 1;
}

INLINE void forget_context(const struct followed* at, const struct image* image, u64 handle)
{
    struct handle_number key = {.image = *image, .number = handle};
    DELETE_SHARED(&contexts, SHARED_CONTEXTS, &key);
    if (has_argument(at->row, ARG_HANDLE) && at->thread->context == handle)
        context_pop(image, at->thread);
}

INLINE int life_return_body(struct pt_regs* ctx)
{
    struct followed at;
    if (!followed_returns(ctx, PART_STATE, &at))
        return 0;
    struct image image = image_of(at.task);
    u64 argument = at.call->word[LIFE_ARGUMENT], handle = 0;
    bool done = (s32)PT_REGS_RC(ctx) == 0;
    switch (at.row->kind) {
    case KIND_STREAM_NEW:
        if (done)
            stream_created(&image, read_word(argument));
        break;
    case KIND_STREAM_GONE:
        stream_left(&image, argument, at.call->word[LIFE_CAPTURE], done);
        break;
    default:
        if (done && ending_context(&at, &image, argument, &handle))
            forget_context(&at, &image, handle);
    }
    return 0;
}

CALL_PROGRAMS(life, life_entry_body, life_return_body)

#endif
