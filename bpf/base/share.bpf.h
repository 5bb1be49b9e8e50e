/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Per-process shares of the tables that all processes fill. A process may have up to SHARE_FACTOR times as many entries
 * as the table has free entries. So a single process can fill three quarters of a table, and several greedy processes
 * still leave room for others. */
#ifndef GPUSNOOP_SHARE_BPF_H
#define GPUSNOOP_SHARE_BPF_H

#include "base/common.bpf.h"
#include "shared/process.h"
#include "shared/share.h"

#define SHARE_FACTOR 3

HASH_MAP(shares, 16384, struct image, struct share);

MMAPABLE_ARRAY_MAP(shared_taken, 1, struct shared_taken);

const volatile struct share no_share = {};

INLINE struct image image_of_word(u64 word)
{
    return (struct image){.pid = (u32)word, .serial = word >> 32};
}

INLINE u64 word_of_image(const struct image* image)
{
    return (u64)image->serial << 32 | image->pid;
}

INLINE struct share* share_of(const struct image* image)
{
    struct share* share = bpf_map_lookup_elem(&shares, image);
    if (share)
        return share;
    bpf_map_update_elem(&shares, image, (const void*)&no_share,
                        BPF_NOEXIST); /* fails if another thread has just added the entry */
    return bpf_map_lookup_elem(&shares, image);
}

INLINE struct shared_taken* all_taken(void)
{
    u32 first = 0;
    return bpf_map_lookup_elem(&shared_taken, &first);
}

INLINE bool is_within_share(u64 own, u64 all, u64 capacity)
{
    return all < capacity && own < SHARE_FACTOR * (capacity - all);
}

INLINE bool charge(const struct image* image, u32 table, u64 capacity)
{
    struct share* share = share_of(image);
    struct shared_taken* all = all_taken();
    if (table >= SHARED_TABLES || !share || !all)
        return true;
    if (!is_within_share(share->entries[table], all->entries[table], capacity))
        return false;
    __sync_fetch_and_add(&share->entries[table], 1);
    __sync_fetch_and_add(&all->entries[table], 1);
    return true;
}

INLINE void refund(const struct image* image, u32 table)
{
    struct share* share = bpf_map_lookup_elem(&shares, image);
    struct shared_taken* all = all_taken();
    if (table >= SHARED_TABLES || !share || !all || !share->entries[table])
        return;
    __sync_fetch_and_add(&share->entries[table], -1);
    __sync_fetch_and_add(&all->entries[table], -1);
}

/* Charges an entry to the process. Returns 0 if the process has used up its share. */
VERIFIED_ONCE int take_share(u64 image_word, u32 table, u64 capacity)
{
    struct image image = image_of_word(image_word);
    return charge(&image, table, capacity);
}

VERIFIED_ONCE int give_share(u64 image_word, u32 table)
{
    struct image image = image_of_word(image_word);
    refund(&image, table);
    return 0;
}

enum row_admission {
    ROW_REFUSED,
    ROW_TAKEN,
    ROW_COARSE, /* the share is used up, and the ring buffer is half full: count the call in a less detailed row */
};

/* Like charge(), but for rows of the table `calls`. Deleted rows need not be uncharged: the front end sets the total
 * number of rows each time that it has read the table. When a new generation of rows begins, it changes rows_since, and
 * each process's count then starts again at 0. */
INLINE int row_admission(u64 image_word, u64 capacity)
{
    struct image image = image_of_word(image_word);
    struct share* share = share_of(&image);
    struct shared_taken* all = all_taken();
    if (!share || !all)
        return ROW_TAKEN;
    if (share->rows_since != all->rows_since) {
        share->rows_since = all->rows_since;
        share->rows = 0;
    }
    if (is_within_share(share->rows, all->rows, capacity)) {
        __sync_fetch_and_add(&share->rows, 1);
        __sync_fetch_and_add(&all->rows, 1);
        return ROW_TAKEN;
    }
    if (!ring_is_half_full())
        return ROW_REFUSED;
    lose(LOSS_DETAIL, 1);
    return ROW_COARSE;
}

VERIFIED_ONCE int admit_row(u64 image_word, u64 capacity)
{
    return row_admission(image_word, capacity);
}

/* Replaces admit_row() on kernels that do not allow calls of global functions with preemption disabled. */
OWN_FRAME __attribute__((unused)) int admit_row_guarded(u64 image_word, u64 capacity)
{
    return row_admission(image_word, capacity);
}

struct bpf_map___head { /* the part of struct bpf_map that programs can read */
    u32 max_entries;
} __attribute__((preserve_access_index));

#define ENTRIES_OF(map) ((struct bpf_map___head*)(map))->max_entries

OWN_FRAME __attribute__((unused)) long put_shared(void* map, u32 table, const struct image* image, const void* key,
                                                  const void* value)
{
    bool is_new = !bpf_map_lookup_elem(map, key);
    bool taken = is_new && charge(image, table, ENTRIES_OF(map));
    long error = -7 /* E2BIG */;
    if (!is_new || taken)
        error = bpf_map_update_elem(map, key, value, BPF_ANY);
    if (error && taken)
        refund(image, table);
    return error;
}

/* Like bpf_map_update_elem() with BPF_ANY, but returns -E2BIG if the key's process has used up its share. */
#define PUT_SHARED(map, table, key, value) put_shared(map, table, &(key)->image, key, value)

OWN_FRAME __attribute__((unused)) long delete_shared(void* map, u32 table, u64 owner, const void* key)
{
    long error = bpf_map_delete_elem(map, key);
    if (!error)
        give_share(owner, table);
    return error;
}

/* Like bpf_map_delete_elem(), for entries added by PUT_SHARED(). */
#define DELETE_SHARED(map, table, key) delete_shared(map, table, word_of_image(&(key)->image), key)

#endif
