/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Contexts, the current device of each thread, and the programs for calls that set state for later calls. */
#ifndef GPUSNOOP_CONTEXT_BPF_H
#define GPUSNOOP_CONTEXT_BPF_H

#include "base/probe.bpf.h"
#include "base/share.bpf.h"
#include "base/thread.bpf.h"
#include "kinds/state.bpf.h"
#include "shared/call.h"

/* The device on which a thread works. A context is created on a device, and each thread has a current context. If a
 * thread set its context before attach, the context is unknown until the thread changes it. */

#define HIP_DEVICE_UNKNOWN (DEVICE_UNKNOWN + 1) /* the thread has set a device, but we do not know which */

struct context {
    u32 device; /* ordinal + 1 */
    u32 number; /* our id, unique among the contexts of all processes; needed because handles are reused */
};

HASH_MAP(contexts, 16384, struct handle_number, struct context);

__u32 contexts_made = 0;

INLINE void context_made(const struct image* image, u64 handle, u32 device)
{
    struct handle_number key = {.image = *image, .number = handle};
    struct context new = {.device = device + 1, .number = __sync_fetch_and_add(&contexts_made, 1) + 1};
    /* Sends the process to the front end even if none of its calls is counted. The front end then deletes the process's
     * contexts when the process exits. */
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

/* HIP has no separate contexts: the handle that hipCtxCreate() returns is that of the device. hipCtxPopCurrent() and
 * hipCtxDestroy() leave the thread's device unchanged and free nothing (hip_context.cpp of ROCm 5.7 to 7). */
INLINE void hip_device_current(const struct image* image, struct thread_state* thread, u64 handle)
{
    struct context* context = context_of(image, handle);
    *device_by(thread, LAYER_HIP) = context ? context->device : HIP_DEVICE_UNKNOWN;
}

/* Returns 1 + the ordinal of the thread's device, or 0 if unknown. A thread that has set no device uses the first
 * one. */
INLINE u32 hip_device_of(struct task_struct* task, struct thread_state* thread)
{
    u32 device = *device_by(thread, LAYER_HIP);
    if (!device && is_fully_traced(task))
        return 1;
    return device < HIP_DEVICE_UNKNOWN ? device : 0;
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
        /* Without opaque(), clang 22 and later infer the bound from the line above, and omit the mask, which the
         * verifier of Linux 6.1 needs. */
        handle = thread->below[opaque(thread->depth) & (CONTEXTS_BELOW - 1)];
    context_current(image, thread, handle);
}

/* Returns the context that will own the memory that a thread allocates, or NULL if unknown. For HIP, the context is the
 * device, and its handle is 1 + the device's ordinal. */
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

/* The primary context of a device, which all threads of a process share, and its number of holders. The entry is not
 * deleted when the context ends, because another thread may be about to retain the context again. */
struct primary {
    u64 context;
    u64 holders;
};

/* Keyed by the device's ordinal. */
HASH_MAP(primaries, 16384, struct handle_number, struct primary);

INLINE void primary_retained(const struct image* image, u64 handle, u32 device)
{
    struct handle_number key = {.image = *image, .number = device};
    struct primary* primary = bpf_map_lookup_elem(&primaries, &key);
    if (!primary) {
        struct primary new = {};
        bpf_map_update_elem(&primaries, &key, &new, BPF_NOEXIST); /* fails if another thread has just added the entry */
        primary = bpf_map_lookup_elem(&primaries, &key);
    }
    struct context* context = context_of(image, handle);
    if (!context || context->device != device + 1) /* the entry may be of an older context, whose end was not seen */
        context_made(image, handle, device);
    if (!primary) {
        lose(LOSS_STATE, 1);
        return;
    }
    primary->context = handle;
    __sync_fetch_and_add(&primary->holders, 1);
}

/* Creation and destruction of streams, and the end of contexts. These calls are tracked because handles of destroyed
 * objects are reused. */

enum life_word {
    LIFE_ARGUMENT = FOLLOWED_ROW + 1,
    LIFE_CAPTURE, /* id of the capture that the stream is in */
};

INLINE u32 life_argument(const volatile struct probe_row* row)
{
    switch (row->kind) {
    case KIND_STREAM_NEW:
        return ARG_OUT;
    case KIND_STREAM_DESTROY:
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
    at.call->word[LIFE_CAPTURE] = at.row->kind == KIND_STREAM_DESTROY ? stream_destroy_begins(&image, argument) : 0;
    return 0;
}

/* True if the call ends a context. Sets *handle to the context's handle, or to 0 if the handle is unknown. */
INLINE bool is_context_ending(const struct followed* at, const struct image* image, u64 argument, u64* handle)
{
    const volatile struct probe_row* row = at->row;
    begin_image(at->thread, image);
    *handle = row->layer == LAYER_HIP ? hip_device_of(at->task, at->thread) : argument;
    if (row->layer == LAYER_HIP || has_argument(row, ARG_HANDLE))
        return true;
    struct handle_number key = {.image = *image, .number = argument};
    struct primary* primary = bpf_map_lookup_elem(&primaries, &key);
    *handle = primary && primary->holders ? primary->context : 0;
    if (row->kind == KIND_CONTEXT_DESTROY)
        return true;
    /* If the process started before tracing began, the context may have holders that were not seen. */
    return primary && is_fully_traced(at->task) && __sync_fetch_and_add(&primary->holders, -1) == 1;
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
    case KIND_STREAM_DESTROY:
        stream_destroy_ends(&image, argument, at.call->word[LIFE_CAPTURE], done);
        break;
    default:
        if (done && is_context_ending(&at, &image, argument, &handle))
            forget_context(&at, &image, handle);
    }
    return 0;
}

CALL_PROGRAMS(life, life_entry_body, life_return_body)

/* Calls that set state for later calls: names, captures, contexts. All tools use the same program for these calls. The
 * front end chooses the functions to which a tool attaches it. */

/* Block size and shared memory of a function's legacy launches, set by earlier calls. */
struct legacy_shape {
    u32 block[3];
    u32 smem;
};

LRU_HASH_MAP(legacy_shapes, 4096, struct handle_number, struct legacy_shape);

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
    /* Done before the check of the result: an invalidated capture ends too, although the call returns an error. */
    struct capture ended;
    if (kind == KIND_CAPTURE_END && !is_still_capturing((s32)PT_REGS_RC(ctx)))
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

/* Handles calls whose return value does not matter: registrations of kernels, and calls that set the block size or
 * shared memory of later legacy launches. */
INLINE int note_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = traced_row_of_process(ctx, task);
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
