/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The calls that say what later calls mean: names, captures, contexts. One program for all of them, shared by the
 * tools; which functions it is attached to is the front end's choice. */
#ifndef GPUSNOOP_STATE_BPF_H
#define GPUSNOOP_STATE_BPF_H

#include "base/wanted.bpf.h"
#include "kinds/context.bpf.h"
#include "kinds/life.bpf.h"
#include "kinds/names.bpf.h"
#include "kinds/stream.bpf.h"

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
    STATE_OUT = FOLLOWED_ROW + 1,
    STATE_NAME,
    STATE_HANDLE,
    STATE_STREAM,
    STATE_DEVICE,
};

INLINE int state_entry_body(struct pt_regs* ctx)
{
    struct followed at;
    if (!follow_call(ctx, PART_STATE, &at))
        return 1;
    u64* word = at.call->word;
    word[STATE_OUT] = register_argument(ctx, at.row, ARG_OUT);
    word[STATE_NAME] = register_argument(ctx, at.row, ARG_NAME);
    word[STATE_HANDLE] = register_argument(ctx, at.row, ARG_HANDLE);
    word[STATE_STREAM] = stream_argument(at.row, register_argument(ctx, at.row, ARG_STREAM));
    word[STATE_DEVICE] = register_argument(ctx, at.row, ARG_DEVICE);
    return 0;
}

INLINE int state_return_body(struct pt_regs* ctx)
{
    struct followed at;
    if (!followed_returns(ctx, PART_STATE, &at))
        return 0;
    const u64* word = at.call->word;
    u32 kind = at.row->kind;
    struct image image = image_of(at.task);
    begin_image(at.thread, &image);
    /* A capture that was invalidated ends with an error, and is over all the same. */
    struct capture ended;
    if (kind == KIND_CAPTURE_END && !capture_goes_on((s32)PT_REGS_RC(ctx)))
        capture_end(&image, word[STATE_STREAM], &ended);
    if ((s32)PT_REGS_RC(ctx) != 0)
        return 0;
    switch (kind) {
    case KIND_CAPTURE_BEGIN:
        introduce(&image, cgroups_of(untrusted(at.task)));
        capture_begin(&image, word[STATE_STREAM], 0);
        break;
    case KIND_GET_FUNCTION: {
        struct name_record record = {.source = NAME_LOOKUP,
                                     .image = image,
                                     .handle = read_word(word[STATE_OUT]),
                                     .name_address = word[STATE_NAME]};
        send_name(&record);
        break;
    }
    case KIND_GET_ALIAS: {
        struct name_record record = {
            .source = NAME_ALIAS, .image = image, .handle = read_word(word[STATE_OUT]), .alias = word[STATE_HANDLE]};
        send_alias(&record);
        break;
    }
    case KIND_CONTEXT_NEW:
        if (at.row->layer == LAYER_HIP)
            context_made(&image, read_word(word[STATE_OUT]), word[STATE_DEVICE]);
        else
            primary_retained(&image, read_word(word[STATE_OUT]), word[STATE_DEVICE]);
        break;
    case KIND_CONTEXT_CREATE:
        context_made(&image, read_word(word[STATE_OUT]), word[STATE_DEVICE]);
        context_push(&image, at.thread, read_word(word[STATE_OUT]));
        break;
    case KIND_CONTEXT_SET:
        if (word[STATE_HANDLE])
            context_current(&image, at.thread, word[STATE_HANDLE]);
        else
            context_pop(&image, at.thread);
        break;
    case KIND_CONTEXT_PUSH:
        context_push(&image, at.thread, word[STATE_HANDLE]);
        break;
    case KIND_CONTEXT_POP:
        context_pop(&image, at.thread);
        break;
    case KIND_DEVICE_SET:
        if (!has_argument(at.row, ARG_HANDLE))
            *device_by(at.thread, at.row->layer) = (u32)word[STATE_DEVICE] + 1;
        else if (word[STATE_HANDLE])
            hip_device_current(&image, at.thread, word[STATE_HANDLE]);
        break;
    }
    return 0;
}

/* Calls that need no result: registrations and legacy shapes. */
INLINE int note_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = wanted_row_of_process(ctx, task);
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
        send_registration(&record);
    } else if (row->kind == KIND_SHAPE) {
        struct handle_number key = {.image = image, .number = handle};
        struct legacy_shape new = {.block = {1, 1, 1}};
        struct legacy_shape* shape = bpf_map_lookup_elem(&legacy_shapes, &key);
        if (!shape) {
            PUT_SHARED(&legacy_shapes, SHARED_LEGACY_SHAPES, &key, &new);
            shape = bpf_map_lookup_elem(&legacy_shapes, &key);
        }
        if (!shape) {
            lose(LOSS_STATE, 1);
        } else if (has_argument(row, ARG_SMEM)) {
            shape->smem = (u32)register_argument(ctx, row, ARG_SMEM);
        } else {
            shape->block[0] = (u32)register_argument(ctx, row, ARG_BLOCK_X);
            shape->block[1] = (u32)register_argument(ctx, row, ARG_BLOCK_Y);
            shape->block[2] = (u32)register_argument(ctx, row, ARG_BLOCK_Z);
        }
    }
    return 1;
}

CALL_PROGRAMS(state, state_entry_body, state_return_body)
ENTRY_PROGRAM(note_entry, note_body)

#endif
