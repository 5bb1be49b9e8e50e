/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Live allocations of each process, their totals, and physical memory with its mappings. */
#ifndef GPUSNOOP_HOLDING_BPF_H
#define GPUSNOOP_HOLDING_BPF_H

#include "base/api_call.bpf.h"
#include "base/share.bpf.h"
#include "kinds/context.bpf.h"
#include "shared/holding.h"

/* Live allocations are stored in a hash, which takes 16 bytes per possible entry. If the hash is full, further
 * allocations are stored in a trie. The trie takes memory only for existing entries, but more per entry, and is slower.
 * The front end sets both capacities. */

HASH_MAP(held, HELD_IN_HASH, struct held_key, struct held);

LPM_TRIE_MAP(held_beyond, 1, struct place_key, struct held);

const volatile bool holds_beyond = false; /* true if the trie may be used */
__u64 held_since_full = 0;                /* nonzero if the trie has been used; if 0, it is not searched */

INLINE struct held_key held_key(const struct image* image, u64 number, u32 space)
{
    return (struct held_key){.image = *image, .place = WITHOUT_TAG(number) ^ (u64)space << SPACE_SHIFT};
}

VERIFIED_ONCE int find_held(struct held_key* place, struct held* entry)
{
    if (!place || !entry)
        return 0;
    struct held_key key = *place;
    struct held* found = bpf_map_lookup_elem(&held, &key);
    if (!found && holds_beyond && held_since_full) {
        struct place_key beyond = place_key(key.image, 0, key.place);
        found = bpf_map_lookup_elem(&held_beyond, &beyond);
    }
    if (!found)
        return 0;
    *entry = *found;
    return 1;
}

/* Removes an entry. Returns false if there is no such entry, for example because another thread has removed it. */
VERIFIED_ONCE int remove_held(struct held_key* place)
{
    if (!place)
        return 0;
    struct held_key key = *place;
    if (!bpf_map_delete_elem(&held, &key))
        return 1;
    struct place_key beyond = place_key(key.image, 0, key.place);
    return holds_beyond && held_since_full && !bpf_map_delete_elem(&held_beyond, &beyond);
}

/* Adds an entry. `flags` is BPF_NOEXIST or BPF_ANY. Returns 0 or a negative error number. */
VERIFIED_ONCE int put_held(struct held_key* place, struct held* entry, u64 flags)
{
    if (!place || !entry)
        return -22;
    struct held_key key = *place;
    struct held new = *entry;
    struct place_key beyond = place_key(key.image, 0, key.place);
    if (holds_beyond && held_since_full && bpf_map_lookup_elem(&held_beyond, &beyond))
        return flags == BPF_NOEXIST ? -17 /* EEXIST */ : bpf_map_update_elem(&held_beyond, &beyond, &new, BPF_ANY);
    int error = bpf_map_update_elem(&held, &key, &new, flags);
    if (error != -7 /* E2BIG */ || !holds_beyond)
        return error;
    held_since_full = 1;
    return bpf_map_update_elem(&held_beyond, &beyond, &new, BPF_ANY);
}

/* Totals of live allocations. The totals are updated at every call, because a peak cannot be reconstructed later. */

const volatile bool follow = true; /* if false, calls are counted, but allocations are not tracked */

HASH_MAP(held_bytes, 16384, struct image, struct held_bytes);

struct context_number {
    struct image image;
    u32 number;
};

/* Totals of a context's memory, which is freed when the context ends. */
struct context_held {
    u64 bytes; /* bytes of device memory */
    u64 entries;
};

/* Contains only contexts that have not ended. */
HASH_MAP(context_bytes, 16384, struct context_number, struct context_held);

INLINE struct held_bytes* bytes_of(const struct image* image)
{
    struct held_bytes* bytes = bpf_map_lookup_elem(&held_bytes, image);
    if (bytes)
        return bytes;
    struct held_bytes zero = {};
    bpf_map_update_elem(&held_bytes, image, &zero, BPF_NOEXIST);
    return bpf_map_lookup_elem(&held_bytes, image);
}

/* Maximum attempts to raise the peak. An attempt fails if another thread raises the peak at the same time. */
#define PEAK_TRIES 8

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

/* Subtracts all memory of a context that has ended from the totals. The front end deletes the entries of the context's
 * allocations later. */
INLINE void subtract_context(const struct image* image, const struct context_held* less)
{
    struct held_bytes* bytes = bpf_map_lookup_elem(&held_bytes, image);
    struct shared_taken* all = all_taken();
    if (!bytes || !all)
        return;
    __sync_fetch_and_add(&all->entries[SHARED_HELD], -less->entries);
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

/* True if the process's share of the table of live allocations has room for another entry. */
INLINE bool may_hold(const struct image* image)
{
    struct held_bytes* bytes = bytes_of(image);
    struct shared_taken* all = all_taken();
    u64 capacity = ENTRIES_OF(&held) + (holds_beyond ? ENTRIES_OF(&held_beyond) : 0);
    return !bytes || !all || is_within_share(bytes->entries, all->entries[SHARED_HELD], capacity);
}

INLINE void count_held(const struct image* image, const struct held* entry)
{
    struct context_held* in_context = entry->context ? bytes_of_context(image, entry->context, true) : 0;
    struct held_bytes* bytes = bytes_of(image);
    struct shared_taken* all = all_taken();
    if (!bytes || !all) {
        lose(LOSS_STATE, 1);
        return;
    }
    u64 of_device = is_device_memory(entry->holding) ? entry->bytes : 0;
    __sync_fetch_and_add(&all->entries[SHARED_HELD], 1);
    __sync_fetch_and_add(&bytes->entries, 1);
    if (in_context) {
        __sync_fetch_and_add(&in_context->entries, 1);
        __sync_fetch_and_add(&in_context->bytes, of_device);
    }
    if (of_device)
        add_bytes(bytes, of_device);
}

INLINE void uncount_held(const struct image* image, const struct held* entry)
{
    struct context_held* in_context = entry->context ? bytes_of_context(image, entry->context, false) : 0;
    struct held_bytes* bytes = bpf_map_lookup_elem(&held_bytes, image);
    struct shared_taken* all = all_taken();
    /* in_context is NULL if the context has ended. All its entries were subtracted at that time. */
    if (!bytes || !all || (entry->context && !in_context))
        return;
    __sync_fetch_and_add(&all->entries[SHARED_HELD], -1);
    u64 of_device = is_device_memory(entry->holding) ? entry->bytes : 0;
    __sync_fetch_and_add(&bytes->entries, -1);
    __sync_fetch_and_add(&bytes->now, -of_device);
    if (in_context) {
        __sync_fetch_and_add(&in_context->entries, -1);
        __sync_fetch_and_add(&in_context->bytes, -of_device);
    }
}

INLINE void send_holding(u32 type, u32 context, const struct held_key* key, const struct held* entry)
{
    struct holding_record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        lose(LOSS_STATE, 1);
        return;
    }
    record->type = type;
    record->context = context;
    record->key = *key;
    if (entry)
        record->held = *entry;
    else
        __builtin_memset(&record->held, 0, sizeof(record->held));
    bpf_ringbuf_submit(record, ring_flags(sizeof(*record)));
}

/* Called if an address is allocated again although it has a live allocation, which means that a free was missed.
 * Reports the old allocation, and subtracts it from the totals. */
INLINE void forget_missed_free(struct held_key* key)
{
    struct held old = {};
    if (!find_held(key, &old))
        return;
    uncount_held(&key->image, &old);
    send_holding(RECORD_REPLACED, 0, key, &old);
}

/* Tracks a new allocation. */
OWN_FRAME int track_held(struct task_struct* task, struct call* call, u64 place, u64 now)
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
        forget_missed_free(&key);
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

/* Copies fields of an allocation to its free, so that both are counted in the same row. In event lines (-e), a free
 * keeps its own caller, cgroups, thread, stack and function. */
INLINE void fill_from_held(struct call* call, const struct held* entry)
{
    struct call_key* key = &call->key;
    key->memory.holding = entry->holding;
    key->device = entry->device;
    key->subject = entry->context;
    if (!emit_events) {
        key->caller = entry->caller;
        key->cgroups = entry->cgroups;
        key->tid = entry->tid;
        key->stack = entry->stack;
        key->function = entry->function;
    }
    call->memory.bytes = entry->bytes;
    call->memory.since_ns = entry->since_ns;
    call->memory.context = entry->context;
    call->memory.sized = entry->bytes != 0;
}

/* Reverses fill_from_held(), so that a failed free can restore the allocation. */
INLINE struct held held_from_call(const struct call* call)
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

/* Physical memory exists as long as it has a handle or a mapping. Some allocators release the handle as soon as they
 * have mapped the memory; others keep the handle longer. */

/* The driver's handle -> our id for the memory. Our ids are needed because the driver may reuse a handle while the
 * memory is still mapped. */
LPM_TRIE_MAP(physical_handles, 1 << 18, struct place_key, u64);

struct physical {
    s64 references; /* number of references to the handle */
    s64 mappings;   /* number of mappings */
};

LPM_TRIE_MAP(physicals, 1 << 18, struct place_key, struct physical);

/* Address of a mapping -> our id for the mapped memory. */
LPM_TRIE_MAP(mappings, 1 << 18, struct place_key, u64);

__u64 physicals_made = 0; /* number of physical allocations so far, and the last id assigned */

/* Assigns an id to new physical memory. Returns the id, or 0 if there is no room. */
INLINE u64 new_physical(const struct image* image, u64 handle)
{
    u64 number = __sync_fetch_and_add(&physicals_made, 1) + 1;
    struct place_key key = place_key(*image, 0, number), driver_key = place_key(*image, 0, handle);
    struct physical new = {.references = 1};
    if (PUT_SHARED(&physicals, SHARED_PHYSICALS, &key, &new)) {
        lose(LOSS_UNTRACKED, 1);
        return 0;
    }
    if (bpf_map_update_elem(&physical_handles, &driver_key, &number, BPF_ANY)) {
        DELETE_SHARED(&physicals, SHARED_PHYSICALS, &key);
        lose(LOSS_UNTRACKED, 1);
        return 0;
    }
    return number;
}

OWN_FRAME u64 number_of_handle(const struct image* image, u64 handle)
{
    struct place_key key = place_key(*image, 0, handle);
    u64* number = bpf_map_lookup_elem(&physical_handles, &key);
    return number ? *number : 0;
}

INLINE struct physical* physical_of(const struct image* image, u64 number)
{
    struct place_key key = place_key(*image, 0, number);
    return number ? bpf_map_lookup_elem(&physicals, &key) : 0;
}

OWN_FRAME int forget_handle(const struct image* image, u64 handle)
{
    struct place_key key = place_key(*image, 0, handle);
    return bpf_map_delete_elem(&physical_handles, &key);
}

/* Undoes the effects of a failed release: restores the reference and, if it was the last one, the handle. */
INLINE void restore_handle(const struct image* image, u64 handle, u64 number)
{
    struct place_key key = place_key(*image, 0, handle);
    struct physical* physical = physical_of(image, number);
    if (physical && __sync_fetch_and_add(&physical->references, 1) == 0 &&
        !bpf_map_lookup_elem(
            &physical_handles,
            &key)) /* looked up first, because tries support BPF_NOEXIST only from 6.13 on (eae6a075e953) */
        bpf_map_update_elem(&physical_handles, &key, &number, BPF_ANY);
}

INLINE void add_mapping(const struct image* image, u64 address, u64 handle)
{
    u64 number = number_of_handle(image, handle);
    struct physical* physical = physical_of(image, number);
    struct place_key key = place_key(*image, 0, WITHOUT_TAG(address));
    u64* known = bpf_map_lookup_elem(&mappings, &key);
    /* Another thread has removed a mapping at this address, and its call has not returned yet. */
    struct physical* before = known ? physical_of(image, *known) : 0;
    if (before)
        __sync_fetch_and_add(&before->mappings, -1);
    if (!physical) { /* the memory was allocated before tracing began */
        if (before)
            DELETE_SHARED(&mappings, SHARED_MAPPINGS, &key);
        return;
    }
    __sync_fetch_and_add(&physical->mappings, 1);
    if (PUT_SHARED(&mappings, SHARED_MAPPINGS, &key, &number))
        lose(LOSS_STATE, 1);
}

/* Removes a mapping. If this was the memory's last mapping and the memory has no handle, returns our id for the memory,
 * else 0. */
OWN_FRAME u64 drop_mapping(const struct image* image, u64 address)
{
    struct place_key key = place_key(*image, 0, WITHOUT_TAG(address));
    u64* known = bpf_map_lookup_elem(&mappings, &key);
    if (!known)
        return 0;
    u64 number = *known;
    struct physical* physical = physical_of(image, number);
    if (DELETE_SHARED(&mappings, SHARED_MAPPINGS, &key) || !physical)
        return 0;
    s64 left = __sync_fetch_and_add(&physical->mappings, -1) - 1;
    return left <= 0 && physical->references <= 0 ? number : 0;
}

OWN_FRAME int forget_physical(const struct image* image, u64 number)
{
    struct place_key key = place_key(*image, 0, number);
    return DELETE_SHARED(&physicals, SHARED_PHYSICALS, &key);
}

/* Handles the end of a context, which frees all memory that the context owns. */

INLINE int context_end_return_body(struct pt_regs* ctx)
{
    struct followed at;
    if (!followed_returns(ctx, PART_STATE, &at) || (s32)PT_REGS_RC(ctx) != 0)
        return 0;
    struct held_key record = {.image = image_of(at.task)};
    u64 argument = at.call->word[LIFE_ARGUMENT], handle = 0;
    if (!is_context_ending(&at, &record.image, argument, &handle))
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

CALL_PROGRAMS(release, life_entry_body, context_end_return_body)

#endif
