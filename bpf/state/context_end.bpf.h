/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Contexts that end, and what they held with them. */
#ifndef GPUSNOOP_CONTEXT_END_BPF_H
#define GPUSNOOP_CONTEXT_END_BPF_H

#include "state/holding.bpf.h"

#define GONE_ARGUMENT (FOLLOWED_ROW + 1) /* the word that keeps it */

INLINE int gone_entry_body(struct pt_regs* ctx)
{
    struct followed at;
    if (!follow_call(ctx, PART_STATE, &at))
        return 1;
    at.call->word[GONE_ARGUMENT] =
        register_argument(ctx, at.row, has_argument(at.row, ARG_HANDLE) ? ARG_HANDLE : ARG_DEVICE);
    return 0;
}

/* The context that ends by this call: its handle, 0 where it is not known. False: none does. */
INLINE bool ending_context(const struct followed* at, const struct image* image, u64 argument, u64* handle)
{
    const volatile struct probe_row* row = at->row;
    *handle = row->layer == LAYER_HIP ? hip_device_of(at->task, at->thread) : argument;
    if (row->layer == LAYER_HIP || has_argument(row, ARG_HANDLE))
        return true;
    struct handle_number key = {.image = *image, .number = argument};
    struct primary* primary = bpf_map_lookup_elem(&primaries, &key);
    *handle = primary ? primary->context : 0;
    if (row->kind == KIND_MEMORY_GONE)
        return true;
    /* Who was there before tracing began may hold it, too. */
    return primary && seen_whole(at->task) && __sync_fetch_and_add(&primary->holders, -1) == 1;
}

INLINE int gone_return_body(struct pt_regs* ctx)
{
    struct followed at;
    if (!followed_returns(ctx, PART_STATE, &at) || (s32)PT_REGS_RC(ctx) != 0)
        return 0;
    struct held_key record = {.image = image_of(at.task)};
    u64 argument = at.call->word[GONE_ARGUMENT], handle = 0;
    if (!ending_context(&at, &record.image, argument, &handle))
        return 0;
    struct context* context = context_of(&record.image, handle);
    u32 number = context ? context->number : 0;
    if (context) {
        struct handle_number key = {.image = record.image, .number = handle};
        struct context_number in = {.image = record.image, .number = number};
        u64* bytes = bpf_map_lookup_elem(&context_bytes, &in);
        if (bytes)
            subtract_bytes(&record.image, *bytes);
        bpf_map_delete_elem(&context_bytes, &in);
        bpf_map_delete_elem(&contexts, &key);
    }
    if (has_argument(at.row, ARG_HANDLE) && at.thread->context == handle)
        context_pop(&record.image, at.thread);
    if (has_argument(at.row, ARG_DEVICE)) {
        struct handle_number key = {.image = record.image, .number = argument};
        bpf_map_delete_elem(&primaries, &key);
    }
    send_holding(RECORD_CONTEXT_ENDED, number, &record, 0);
    return 0;
}

CALL_PROGRAMS(gone, gone_entry_body, gone_return_body)

#endif
