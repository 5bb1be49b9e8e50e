/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The calls that say what later calls mean: names, captures, contexts. One program for all of them, shared by the
 * tools; which functions it is attached to is the front end's choice. */
#ifndef GPUSNOOP_STATE_BPF_H
#define GPUSNOOP_STATE_BPF_H

#include "context.bpf.h"
#include "names.bpf.h"
#include "probe.bpf.h"
#include "process.bpf.h"
#include "stream.bpf.h"
#include "thread.bpf.h"

/* Legacy launches take block and shared memory from what was set on the function before. */
struct legacy_shape {
    u32 block[3];
    u32 smem;
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, struct handle_number);
    __type(value, struct legacy_shape);
} legacy_shapes SEC(".maps");

enum state_word {
    STATE_ROW,
    STATE_OUT,
    STATE_NAME,
    STATE_HANDLE,
    STATE_STREAM,
    STATE_DEVICE,
};

INLINE int state_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!wanted_process(task))
        return 1;
    u32 number = row_number(ctx);
    if (!number)
        return 1;
    const volatile struct probe_row* row = probe_row(number);
    struct open_call* call = open_call_of(ctx, task, PART_STATE);
    if (!call)
        return 1;
    call->word[STATE_ROW] = number;
    call->word[STATE_OUT] = register_argument(ctx, row, ARG_OUT);
    call->word[STATE_NAME] = register_argument(ctx, row, ARG_NAME);
    call->word[STATE_HANDLE] = register_argument(ctx, row, ARG_HANDLE);
    call->word[STATE_STREAM] = stream_argument(row, register_argument(ctx, row, ARG_STREAM));
    call->word[STATE_DEVICE] = register_argument(ctx, row, ARG_DEVICE);
    return 0;
}

INLINE int state_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!wanted_process(task))
        return 0;
    struct thread_state* thread = thread_state(task);
    struct open_call* call = close_call_of(ctx, thread, PART_STATE);
    if (!call)
        return 0;
    const volatile struct probe_row* row = probe_row(call->word[STATE_ROW]);
    u32 kind = row->kind;
    struct image image = image_of(task);
    /* A capture that was invalidated ends with an error, and is over all the same. */
    struct capture ended;
    if (kind == KIND_CAPTURE_END && !capture_goes_on((s32)ctx->ax))
        capture_end(&image, call->word[STATE_STREAM], &ended);
    if ((s32)ctx->ax != 0)
        return 0;
    switch (kind) {
    case KIND_CAPTURE_BEGIN:
        capture_begin(&image, call->word[STATE_STREAM], 0);
        break;
    case KIND_GET_FUNCTION: {
        struct name_record record = {.source = NAME_LOOKUP,
                                     .image = image,
                                     .handle = read_word(call->word[STATE_OUT]),
                                     .name_address = call->word[STATE_NAME]};
        send_name(&record);
        break;
    }
    case KIND_GET_ALIAS: {
        struct name_record record = {.source = NAME_ALIAS,
                                     .image = image,
                                     .handle = read_word(call->word[STATE_OUT]),
                                     .alias = call->word[STATE_HANDLE]};
        send_alias(&record);
        break;
    }
    case KIND_CONTEXT_NEW:
        primary_retained(&image, read_word(call->word[STATE_OUT]), call->word[STATE_DEVICE]);
        break;
    case KIND_CONTEXT_CREATE:
        context_made(&image, read_word(call->word[STATE_OUT]), call->word[STATE_DEVICE]);
        context_push(&image, thread, read_word(call->word[STATE_OUT]));
        break;
    case KIND_CONTEXT_SET:
        if (call->word[STATE_HANDLE])
            context_current(&image, thread, call->word[STATE_HANDLE]);
        else
            context_pop(&image, thread);
        break;
    case KIND_CONTEXT_PUSH:
        context_push(&image, thread, call->word[STATE_HANDLE]);
        break;
    case KIND_CONTEXT_POP:
        context_pop(&image, thread);
        break;
    case KIND_DEVICE_SET:
        thread->device = (u32)call->word[STATE_DEVICE] + 1;
        break;
    }
    return 0;
}

/* Calls that need no result: registrations and legacy shapes. */
INLINE int note_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!wanted_process(task))
        return 1;
    u32 number = row_number(ctx);
    if (!number)
        return 1;
    const volatile struct probe_row* row = probe_row(number);
    struct image image = image_of(task);
    u64 handle = register_argument(ctx, row, ARG_HANDLE);
    if (row->kind == KIND_REGISTER) {
        struct name_record record = {.source = NAME_REGISTERED,
                                     .image = image,
                                     .handle = handle,
                                     .name_address = register_argument(ctx, row, ARG_NAME)};
        send_name(&record);
    } else if (row->kind == KIND_SHAPE) {
        struct handle_number key = {.image = image, .number = handle};
        struct legacy_shape shape = {.block = {1, 1, 1}};
        struct legacy_shape* before = bpf_map_lookup_elem(&legacy_shapes, &key);
        if (before)
            shape = *before;
        if (has_argument(row, ARG_SMEM)) {
            shape.smem = (u32)register_argument(ctx, row, ARG_SMEM);
        } else {
            shape.block[0] = (u32)register_argument(ctx, row, ARG_BLOCK_X);
            shape.block[1] = (u32)register_argument(ctx, row, ARG_BLOCK_Y);
            shape.block[2] = (u32)register_argument(ctx, row, ARG_BLOCK_Z);
        }
        if (bpf_map_update_elem(&legacy_shapes, &key, &shape, BPF_ANY))
            lose(LOSS_STATE, 1);
    }
    return 1;
}

CALL_PROGRAMS(state, state_entry_body, state_return_body)
GUARDED_PROGRAM(note_entry, note_body)

#endif
