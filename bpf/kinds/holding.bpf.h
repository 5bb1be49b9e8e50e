/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The sums of what is held, which have to be right at every moment: a peak is not to be had afterwards. */
#ifndef GPUSNOOP_HOLDING_BPF_H
#define GPUSNOOP_HOLDING_BPF_H

#include "base/api_call.bpf.h"
#include "base/share.bpf.h"
#include "kinds/context.bpf.h"
#include "kinds/held.bpf.h"
#include "shared/holding.h"

const volatile bool follow = true; /* otherwise only calls are counted, and nothing is held */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct image);
    __type(value, struct held_bytes);
} held_bytes SEC(".maps");

struct context_number {
    struct image image;
    u32 number;
};

/* What ends with a context. */
struct context_held {
    u64 bytes; /* memory of the device */
    u64 entries;
};

/* Contexts that have ended are not in here. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct context_number);
    __type(value, struct context_held);
} context_bytes SEC(".maps");

INLINE struct held_bytes* bytes_of(const struct image* image)
{
    struct held_bytes* bytes = bpf_map_lookup_elem(&held_bytes, image);
    if (bytes)
        return bytes;
    struct held_bytes zero = {};
    bpf_map_update_elem(&held_bytes, image, &zero, BPF_NOEXIST);
    return bpf_map_lookup_elem(&held_bytes, image);
}

#define PEAK_TRIES 8 /* against other threads that raise it */

INLINE void add_bytes(struct held_bytes* bytes, u64 more)
{
    u64 now = __sync_fetch_and_add(&bytes->now, more) + more;
    u64 peak = bytes->peak;
    for (int i = 0; i < PEAK_TRIES && now > peak; i++) {
        u64 before = __sync_val_compare_and_swap(&bytes->peak, peak, now);
        if (before == peak)
            return;
        peak = before;
    }
}

/* All that a context held has gone with it. The front end deletes its entries later. */
INLINE void subtract_context(const struct image* image, const struct context_held* less)
{
    struct held_bytes* bytes = bpf_map_lookup_elem(&held_bytes, image);
    struct shared_taken* all = all_taken();
    if (!bytes || !all)
        return;
    __sync_fetch_and_add(&all->of[SHARED_HELD], -less->entries);
    __sync_fetch_and_add(&bytes->now, -less->bytes);
    __sync_fetch_and_add(&bytes->entries, -less->entries);
}

INLINE struct context_held* bytes_of_context(const struct image* image, u32 number, bool create)
{
    struct context_number key = {.image = *image, .number = number};
    struct context_held* held = bpf_map_lookup_elem(&context_bytes, &key);
    if (held || !create)
        return held;
    struct context_held zero = {};
    bpf_map_update_elem(&context_bytes, &key, &zero, BPF_NOEXIST);
    return bpf_map_lookup_elem(&context_bytes, &key);
}

/* True if the process may have another entry in the table of allocations. */
INLINE bool may_hold(const struct image* image)
{
    struct held_bytes* bytes = bytes_of(image);
    struct shared_taken* all = all_taken();
    u64 capacity = ENTRIES_OF(&held) + (holds_beyond ? ENTRIES_OF(&held_beyond) : 0);
    return !bytes || !all || is_within_share(bytes->entries, all->of[SHARED_HELD], capacity);
}

INLINE void count_held(const struct image* image, const struct held* what)
{
    struct context_held* in_context = what->context ? bytes_of_context(image, what->context, true) : 0;
    struct held_bytes* bytes = bytes_of(image);
    struct shared_taken* all = all_taken();
    if (!bytes || !all) {
        lose(LOSS_STATE, 1);
        return;
    }
    u64 of_device = is_device_memory(what->holding) ? what->bytes : 0;
    __sync_fetch_and_add(&all->of[SHARED_HELD], 1);
    __sync_fetch_and_add(&bytes->entries, 1);
    if (in_context) {
        __sync_fetch_and_add(&in_context->entries, 1);
        __sync_fetch_and_add(&in_context->bytes, of_device);
    }
    if (of_device)
        add_bytes(bytes, of_device);
}

INLINE void uncount_held(const struct image* image, const struct held* what)
{
    struct context_held* in_context = what->context ? bytes_of_context(image, what->context, false) : 0;
    struct held_bytes* bytes = bpf_map_lookup_elem(&held_bytes, image);
    struct shared_taken* all = all_taken();
    if (!bytes || !all || (what->context && !in_context))
        return; /* it went with its context */
    __sync_fetch_and_add(&all->of[SHARED_HELD], -1);
    u64 of_device = is_device_memory(what->holding) ? what->bytes : 0;
    __sync_fetch_and_add(&bytes->entries, -1);
    __sync_fetch_and_add(&bytes->now, -of_device);
    if (in_context) {
        __sync_fetch_and_add(&in_context->entries, -1);
        __sync_fetch_and_add(&in_context->bytes, -of_device);
    }
}

INLINE void send_holding(u32 type, u32 context, const struct held_key* key, const struct held* what)
{
    struct holding_record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        lose(LOSS_STATE, 1);
        return;
    }
    record->type = type;
    record->context = context;
    record->key = *key;
    if (what)
        record->held = *what;
    else
        __builtin_memset(&record->held, 0, sizeof(record->held));
    bpf_ringbuf_submit(record, ring_flags(sizeof(*record)));
}

/* What was there has been freed without being seen to. */
INLINE void replace(struct held_key* key)
{
    struct held old = {};
    if (!find_held(key, &old))
        return;
    uncount_held(&key->image, &old);
    send_holding(RECORD_REPLACED, 0, key, &old);
}

/* The call has allocated this. */
static __attribute__((noinline)) int hold(struct task_struct* task, struct call* call, u64 place, u64 now)
{
    if (!task || !call)
        return 0;
    struct call_key* call_key = &call->key;
    struct held_key key = {.image = call_key->image, .place = place};
    struct context* context = context_of_memory(&key.image, task, call_key->layer);
    struct held new = {
        .bytes = call->memory.bytes,
        .since_ns = now,
        .caller = call_key->caller,
        .cgroups = call_key->cgroups,
        .tid = call_key->tid,
        .stack = call_key->stack,
        .holding = call_key->memory.holding,
        .device = call_key->device,
        .function = call_key->function,
    };
    bool ends = call_key->layer == LAYER_HIP ? ends_with_device(new.holding) : ends_with_context(new.holding);
    if (context && ends && place >> SPACE_SHIFT != SPACE_PHYSICAL)
        new.context = context->number;
    call_key->subject = new.context;
    call->memory.context = new.context;
    int error = may_hold(&key.image) ? put_held(&key, &new, BPF_NOEXIST) : -7 /* E2BIG */;
    if (error == -17 /* EEXIST */) {
        replace(&key);
        error = put_held(&key, &new, BPF_ANY);
    }
    if (error) {
        lose(LOSS_UNTRACKED, 1);
        call_key->flags |= CALL_UNTRACKED;
        return 0;
    }
    count_held(&key.image, &new);
    return 0;
}

/* It is freed, or about to be: whose call it counts for. In lines, each call stands for itself. */
INLINE void fill_from_held(struct call* call, const struct held* what)
{
    struct call_key* key = &call->key;
    key->memory.holding = what->holding;
    key->device = what->device;
    key->subject = what->context;
    if (!emit_events) {
        key->caller = what->caller;
        key->cgroups = what->cgroups;
        key->tid = what->tid;
        key->stack = what->stack;
        key->function = what->function;
    }
    call->memory.bytes = what->bytes;
    call->memory.since_ns = what->since_ns;
    call->memory.context = what->context;
    call->memory.sized = what->bytes != 0;
}

/* ... and back: the call has failed. */
INLINE struct held held_again(const struct call* call)
{
    const struct call_key* key = &call->key;
    return (struct held){
        .bytes = call->memory.bytes,
        .since_ns = call->memory.since_ns,
        .caller = key->caller,
        .cgroups = key->cgroups,
        .tid = key->tid,
        .stack = key->stack,
        .context = call->memory.context,
        .holding = key->memory.holding,
        .device = key->device,
        .function = key->function,
    };
}

#endif
