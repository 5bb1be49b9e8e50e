/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Contexts that end, and the memory that they take with them. */
#ifndef GPUSNOOP_CONTEXT_END_BPF_H
#define GPUSNOOP_CONTEXT_END_BPF_H

#include "kinds/holding.bpf.h"
#include "kinds/life.bpf.h"

INLINE int gone_return_body(struct pt_regs* ctx)
{
    struct followed at;
    if (!followed_returns(ctx, PART_STATE, &at) || (s32)PT_REGS_RC(ctx) != 0)
        return 0;
    struct held_key record = {.image = image_of(at.task)};
    u64 argument = at.call->word[LIFE_ARGUMENT], handle = 0;
    if (!ending_context(&at, &record.image, argument, &handle))
        return 0;
    struct context* context = context_of(&record.image, handle);
    u32 number = context ? context->number : 0;
    if (context) {
        struct context_number in = {.image = record.image, .number = number};
        struct context_held* held = bpf_map_lookup_elem(&context_bytes, &in);
        if (held)
            subtract_context(&record.image, held);
        bpf_map_delete_elem(&context_bytes, &in);
    }
    forget_context(&at, &record.image, handle);
    send_holding(RECORD_CONTEXT_ENDED, number, &record, 0);
    return 0;
}

CALL_PROGRAMS(gone, life_entry_body, gone_return_body)

#endif
