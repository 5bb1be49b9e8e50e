/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Communicators, by where they are in a process. */
#ifndef GPUSNOOP_COMMS_BPF_H
#define GPUSNOOP_COMMS_BPF_H

#include "base/order.bpf.h"
#include "base/process.bpf.h"
#include "base/share.bpf.h"

struct comm {
    u32 number;
    u32 known;
    u32 made;
    u32 calls;
    s32 error; /* that was told of it last */
    u32 front; /* the row in front that has it instead, + 1 */
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct handle_number);
    __type(value, struct comm);
} comms SEC(".maps");

/* In front of the table, where a communicator is found by arithmetic alone (12 ns; in the table 62). The table says
 * which ones there are: two threads may come with a new one at the same time, and the front end takes those of
 * processes that have ended out of the table alone. */
#define FRONT_COMMS 1024 /* a power of two */

struct front_comm {
    struct comm comm;         /* first: the verifier wants no arithmetic with what may be NULL */
    struct handle_number key; /* whose number is 0 where there is none, or none yet */
    u64 taken;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, FRONT_COMMS);
    __type(key, u32);
    __type(value, struct front_comm);
} front_comms SEC(".maps");

INLINE u32 front_comm_place(const struct handle_number* key)
{
    return (key->number ^ *(const u64*)&key->image) * 0x9e3779b97f4a7c15ULL >> 54;
}

INLINE bool is_front_comm(const struct front_comm* front, const struct handle_number* key)
{
    return load_acquire(&front->key.number) == key->number && front->key.image.pid == key->image.pid &&
           front->key.image.serial == key->image.serial;
}

INLINE struct comm* comm_in_front(const struct handle_number* key)
{
    u32 at = front_comm_place(key);
    struct front_comm* front = bpf_map_lookup_elem(&front_comms, &at);
    return front && key->number && is_front_comm(front, key) ? &front->comm : 0;
}

/* Any. */
INLINE struct comm* comm_in_table(const struct handle_number* key)
{
    struct comm* comm = bpf_map_lookup_elem(&comms, key);
    if (!comm || !comm->front)
        return comm;
    u32 at = comm->front - 1;
    struct front_comm* front = bpf_map_lookup_elem(&front_comms, &at);
    return front ? &front->comm : 0;
}

/* A row that nobody has, or a process that has ended, is the caller's. */
INLINE struct front_comm* take_front_comm(u32 at)
{
    struct front_comm* front = bpf_map_lookup_elem(&front_comms, &at);
    if (!front || !__sync_val_compare_and_swap(&front->taken, 0, 1))
        return front;
    u64 number = front->key.number;
    if (!number || bpf_map_lookup_elem(&comms, &front->key))
        return 0;
    return __sync_val_compare_and_swap(&front->key.number, number, 0) == number ? front : 0;
}

/* Unless another thread has added it meanwhile. */
INLINE void add_comm(const struct handle_number* key, struct comm* fresh)
{
    u32 at = front_comm_place(key);
    if (!take_share(word_of_image(&key->image), SHARED_COMMS, ENTRIES_OF(&comms)))
        return;
    struct front_comm* front = key->number ? take_front_comm(at) : 0;
    if (front) {
        front->comm = *fresh;
        fresh->front = at + 1;
    }
    bool added = !bpf_map_update_elem(&comms, key, fresh, BPF_NOEXIST);
    if (!added)
        give_share(word_of_image(&key->image), SHARED_COMMS);
    if (front && added) {
        front->key.image = key->image;
        store_ordered(&front->key.number, key->number);
    } else if (front) {
        store_ordered(&front->taken, 0);
    }
}

INLINE void forget_comm(const struct handle_number* key)
{
    u32 at = front_comm_place(key);
    struct front_comm* front = bpf_map_lookup_elem(&front_comms, &at);
    bool in_front = front && key->number && is_front_comm(front, key);
    if (in_front)
        front->key.number = 0;
    DELETE_SHARED(&comms, SHARED_COMMS, key);
    if (in_front)
        store_ordered(&front->taken, 0);
}

#endif
