/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The table of what is held: a hash, which takes 16 bytes for each entry that it has room for, and a trie for what
 * finds none there. That one takes memory for its entries only, but more for each, and more time. */
#ifndef GPUSNOOP_HELD_BPF_H
#define GPUSNOOP_HELD_BPF_H

#include "kinds/place.bpf.h"
#include "shared/holding.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, HELD_IN_HASH); /* set by the front end, as is that of the other one */
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct held_key);
    __type(value, struct held);
} held SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct place_key);
    __type(value, struct held);
} held_beyond SEC(".maps");

const volatile bool holds_beyond = false; /* there may be something */
__u64 held_since_full = 0;                /* there has been something: until then nobody looks */

INLINE struct held_key held_key(const struct image* image, u64 number, u32 space)
{
    return (struct held_key){.image = *image, .place = WITHOUT_TAG(number) ^ (u64)space << SPACE_SHIFT};
}

/* These are verified once, and not in each program. Before 6.2 what an argument points to is no key (9ef40974a82a). */
__attribute__((noinline)) int find_held(struct held_key* place, struct held* what)
{
    if (!place || !what)
        return 0;
    struct held_key key = *place;
    struct held* found = bpf_map_lookup_elem(&held, &key);
    if (!found && holds_beyond && held_since_full) {
        struct place_key beyond = place_key(key.image, 0, key.place);
        found = bpf_map_lookup_elem(&held_beyond, &beyond);
    }
    if (!found)
        return 0;
    *what = *found;
    return 1;
}

/* False: it is not there, or somebody else has just done so. */
__attribute__((noinline)) int take_held(struct held_key* place)
{
    if (!place)
        return 0;
    struct held_key key = *place;
    if (!bpf_map_delete_elem(&held, &key))
        return 1;
    struct place_key beyond = place_key(key.image, 0, key.place);
    return holds_beyond && held_since_full && !bpf_map_delete_elem(&held_beyond, &beyond);
}

/* flags: BPF_NOEXIST or BPF_ANY. A negative error number where it is not there then. */
__attribute__((noinline)) int put_held(struct held_key* place, struct held* what, u64 flags)
{
    if (!place || !what)
        return -22;
    struct held_key key = *place;
    struct held new = *what;
    struct place_key beyond = place_key(key.image, 0, key.place);
    if (holds_beyond && held_since_full && bpf_map_lookup_elem(&held_beyond, &beyond))
        return flags == BPF_NOEXIST ? -17 /* EEXIST */ : bpf_map_update_elem(&held_beyond, &beyond, &new, BPF_ANY);
    int error = bpf_map_update_elem(&held, &key, &new, flags);
    if (error != -7 /* E2BIG */ || !holds_beyond)
        return error;
    held_since_full = 1;
    return bpf_map_update_elem(&held_beyond, &beyond, &new, BPF_ANY);
}

#endif
