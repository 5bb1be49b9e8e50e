/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Live allocations of processes, one entry each. */
#ifndef GPUSNOOP_HOLDING_H
#define GPUSNOOP_HOLDING_H

#include <linux/types.h>

#include "probe.h"
#include "process.h"

/* Keys of tables about a process's memory. The tables are tries, which take memory only for entries that exist, while a
 * hash takes 16 bytes per possible entry. */

/* The address space of a process that uses the driver. The end of a context frees its memory, but which ranges that is,
 * is unknown. So all ranges of the process become invalid, because keys get a new epoch. The front end deletes the
 * entries of old epochs. */
struct address_space {
    __u32 epoch;
    __u32 whole;   /* all ranges since the first call are known, so other host memory is pageable */
    __u64 entries; /* entries of this epoch in the tables of allocations and ranges */
};

/* Key of an address or a handle, with all bits significant. In a trie the value directly follows the key, and atomic
 * additions to it must not cross cache lines, so the key after its prefix is a multiple of 8 bytes. */
struct place_key {
    __u32 prefix; /* WHOLE_PLACE */
    struct image image;
    __u32 epoch; /* 0 in tables that are independent of contexts */
    __u32 zero;
    __u64 number;
} __attribute__((packed, aligned(4)));

#define WHOLE_PLACE 192

/* A range is stored as several blocks. A block has 2^n bytes and begins at a multiple of 2^n, so all its addresses have
 * the same prefix. */
struct range_key {
    __u32 prefix; /* number of significant bits after this field */
    struct image image;
    __u32 epoch;
    __u64 address; /* most significant byte first */
};

/* Kinds of numbers in held_key, because an address and a handle, or handles of two kinds, may be equal. */
enum space {
    SPACE_ADDRESS,
    SPACE_ARRAY,
    SPACE_PHYSICAL, /* our own numbers, because handles of physical memory are reused while it is still mapped */
    SPACE_RESERVED,
    SPACE_EXTERNAL,
    SPACE_POOL,
};

/* Above all bits of user addresses: with five-level page tables, addresses have 57 bits, and the highest is the
 * kernel's. */
#define SPACE_SHIFT 56

static inline __attribute__((always_inline)) enum space space_of(__u32 holding)
{
    switch (holding) {
    case HOLDING_ARRAY:
        return SPACE_ARRAY;
    case HOLDING_RESERVED:
        return SPACE_RESERVED;
    case HOLDING_EXTERNAL:
        return SPACE_EXTERNAL;
    case HOLDING_POOL_OBJECT:
        return SPACE_POOL;
    }
    return SPACE_ADDRESS;
}

#define HELD_IN_HASH (1 << 17) /* entries in the hash; further ones are in a trie */

struct held_key {
    struct image image;
    __u64 place; /* address or handle, with its space in the top bits */
};

/* With key and kernel overhead, an entry takes 128 bytes, which is a size class of the allocator; a larger entry would
 * take 64 bytes more. Fields by which the view does not group have the same values as in call_key. */
struct held {
    __u64 bytes;
    __u64 since_ns; /* CLOCK_MONOTONIC */
    __u64 caller;
    struct cgroups cgroups;
    __u32 tid;
    __s32 stack;
    __u32 context; /* number of the context that owns the memory; 0: none, or unknown */
    __u8 holding;
    __u8 device;
    __u16 function;
};

/* Sums of a process's live memory, as far as its allocations were seen. */
struct held_bytes {
    __u64 now; /* device memory */
    __u64 peak;
    __u64 entries; /* allocations of any kind of memory */
};

struct holding_record {
    __u32 type;
    __u32 context; /* RECORD_CONTEXT_ENDED: number of the context; 0: unknown */
    struct held_key key;
    struct held held; /* RECORD_REPLACED: the old allocation */
};

/* True for memory that is freed with the context in which it was allocated; other memory belongs to the process.
 * Source: the documentation of cuCtxDestroy(), which also excludes memory from cuMemCreate(), cuMemAllocAsync() and
 * cuMemAllocFromPoolAsync(). */
static inline __attribute__((always_inline)) int ends_with_context(__u32 holding)
{
    return holding == HOLDING_DEVICE || holding == HOLDING_ARRAY || holding == HOLDING_MANAGED ||
           holding == HOLDING_PINNED || holding == HOLDING_REGISTERED || holding == HOLDING_IMPORTED ||
           holding == HOLDING_EXTERNAL;
}

/* True for memory that a reset of its HIP device frees: hipDeviceReset() frees the device's own memory
 * (MemObjMap::Purge() in ROCm 5.7 to 7) and its pools. Host memory belongs to all devices. Whether it frees physical
 * memory is unknown. */
static inline __attribute__((always_inline)) int ends_with_device(__u32 holding)
{
    return holding == HOLDING_DEVICE || holding == HOLDING_ARRAY || holding == HOLDING_POOL ||
           holding == HOLDING_IMPORTED;
}

/* True for device memory, but not for addresses, mappings or imports, so that each byte counts once. */
static inline __attribute__((always_inline)) int is_device_memory(__u32 holding)
{
    return holding == HOLDING_DEVICE || holding == HOLDING_ARRAY || holding == HOLDING_POOL || holding == HOLDING_VMM;
}

#endif
