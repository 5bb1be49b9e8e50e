/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Keys of what is known of a process' memory. All are of tries: those take memory only for what is in them, where a
 * hash has 16 bytes for each entry that it has room for. */
#ifndef GPUSNOOP_MEMORY_H
#define GPUSNOOP_MEMORY_H

#include "process.h"

/* A process that calls its driver. When a context ends, its memory goes with it, and it is not known which that was:
 * all ranges of the process are forgotten, by a new epoch in their keys. The front end takes out the old ones. */
struct address_space {
    __u32 epoch;
    __u32 whole;   /* seen from its first call on, and nothing forgotten: what is not known to be pinned is not */
    __u64 entries; /* of this epoch, in the tables of allocations and ranges */
};

/* An address or a handle, of which all bits count. A trie's value lies right behind its key, and atomic additions to it
 * must not cross cache lines: so what follows the prefix is a multiple of 8 bytes. */
struct place_key {
    __u32 prefix; /* WHOLE_PLACE */
    struct image image;
    __u32 epoch; /* 0: it does not go with a context */
    __u32 zero;
    __u64 number;
} __attribute__((packed, aligned(4)));

#define WHOLE_PLACE 192

/* A range is kept as the blocks of 2^n bytes at multiples of 2^n that it consists of: as prefixes of addresses. */
struct range_key {
    __u32 prefix; /* bits of what follows that count */
    struct image image;
    __u32 epoch;
    __u64 address; /* most significant byte first */
};

#endif
