/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Physical memory lives as long as somebody holds a handle of it or it is mapped somewhere: allocators release the
 * handle as soon as they have mapped it, or keep it beyond. */
#ifndef GPUSNOOP_PHYSICAL_BPF_H
#define GPUSNOOP_PHYSICAL_BPF_H

#include "base/share.bpf.h"
#include "kinds/holding.bpf.h"
#include "kinds/place.bpf.h"

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, 1 << 18);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct place_key); /* the driver's */
    __type(value, u64);            /* our own: the driver may give its number to other memory meanwhile */
} physical_handles SEC(".maps");

struct physical {
    s64 references; /* to the handle */
    s64 mappings;
};

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, 1 << 18);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct place_key);
    __type(value, struct physical);
} physicals SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, 1 << 18);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct place_key); /* the address of a mapping */
    __type(value, u64);            /* our number of what is mapped there */
} mappings SEC(".maps");

__u64 physicals_made = 0;

/* Our number of what has just been made; 0 where there is no room. */
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

/* Keys are long, and not to be on the stacks of those who call several of these. */
static __attribute__((noinline)) u64 number_of_handle(const struct image* image, u64 handle)
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

static __attribute__((noinline)) int forget_handle(const struct image* image, u64 handle)
{
    struct place_key key = place_key(*image, 0, handle);
    return bpf_map_delete_elem(&physical_handles, &key);
}

/* A release that has not come to be: the handle has its reference back. */
INLINE void hold_handle_again(const struct image* image, u64 handle, u64 number)
{
    struct place_key key = place_key(*image, 0, handle);
    struct physical* physical = physical_of(image, number);
    if (physical && __sync_fetch_and_add(&physical->references, 1) == 0 &&
        !bpf_map_lookup_elem(&physical_handles, &key)) /* tries heed BPF_NOEXIST from 6.13 on (eae6a075e953) */
        bpf_map_update_elem(&physical_handles, &key, &number, BPF_ANY);
}

INLINE void add_mapping(const struct image* image, u64 address, u64 handle)
{
    u64 number = number_of_handle(image, handle);
    struct physical* physical = physical_of(image, number);
    struct place_key key = place_key(*image, 0, WITHOUT_TAG(address));
    if (!physical)
        return; /* made before tracing began */
    __sync_fetch_and_add(&physical->mappings, 1);
    if (PUT_SHARED(&mappings, SHARED_MAPPINGS, &key, &number))
        lose(LOSS_STATE, 1);
}

/* Our number of the memory that the mapping held, where that has gone with it; 0 else. */
static __attribute__((noinline)) u64 drop_mapping(const struct image* image, u64 address)
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

static __attribute__((noinline)) int forget_physical(const struct image* image, u64 number)
{
    struct place_key key = place_key(*image, 0, number);
    return DELETE_SHARED(&physicals, SHARED_PHYSICALS, &key);
}

#endif
