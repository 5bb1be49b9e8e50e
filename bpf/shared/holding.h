/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Live allocations of processes, one entry each. */
#ifndef GPUSNOOP_HOLDING_H
#define GPUSNOOP_HOLDING_H

#include <linux/types.h>

#include "probe.h"
#include "process.h"

/* Keys of tables about a process's memory. The tables are tries, which take memory only for entries that exist. A hash
 * takes 16 bytes per possible entry. */

/* The address space of a process that uses the driver. A context takes its memory with it, but which ranges these are
 * is unknown. So all ranges of the process are dropped, by a new epoch in their keys, and the front end deletes old
 * entries. */
struct address_space {
    __u32 epoch;
    __u32 whole; /* seen from its first call on, and nothing was dropped: memory not known to be pinned is not pinned */
    __u64 entries; /* entries of this epoch in the tables of allocations and ranges */
};

/* Key of an address or a handle, all of whose bits count. In a trie the value directly follows the key, and atomic
 * additions to it must not cross cache lines, so the key after its prefix is a multiple of 8 bytes. */
struct place_key {
    __u32 prefix; /* WHOLE_PLACE */
    struct image image;
    __u32 epoch; /* 0: independent of contexts */
    __u32 zero;
    __u64 number;
} __attribute__((packed, aligned(4)));

#define WHOLE_PLACE 192

/* A range is stored as blocks of 2^n bytes at multiples of 2^n, whose addresses share a prefix. */
struct range_key {
    __u32 prefix; /* number of bits that count, after this field */
    struct image image;
    __u32 epoch;
    __u64 address; /* most significant byte first */
};

/* Kinds of numbers in held_key. Addresses and handles of several kinds may be equal. */
enum space {
    SPACE_ADDRESS,
    SPACE_ARRAY,
    SPACE_PHYSICAL, /* numbered here, because handles of physical memory are reused while it is still mapped */
    SPACE_RESERVED,
    SPACE_EXTERNAL,
    SPACE_POOL,
};

#define SPACE_SHIFT 56 /* above all address bits: five-level page tables have 57, half of the range is the kernel's */

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

#define HELD_IN_HASH (1 << 17) /* entries; further ones are in a trie */

struct held_key {
    struct image image;
    __u64 place; /* address or handle, with its space in the top bits */
};

/* With key and kernel overhead, an entry takes 128 bytes, a size class of the allocator; one byte more would cost 64.
 * Fields that the view does not group by are as in the call's key. */
struct held {
    __u64 bytes;
    __u64 since_ns; /* CLOCK_MONOTONIC */
    __u64 caller;
    struct cgroups cgroups;
    __u32 tid;
    __s32 stack;
    __u32 context; /* number of the context that it ends with; 0 none, or unknown */
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
    __u32 context; /* RECORD_CONTEXT_ENDED: number of the context; 0 unknown */
    struct held_key key;
    struct held held; /* RECORD_REPLACED */
};

/* Memory that ends with the context in which it was allocated; all other memory belongs to the process. Source: the
 * documentation of cuCtxDestroy(), which also excludes memory from cuMemCreate(), cuMemAllocAsync() and
 * cuMemAllocFromPoolAsync(). */
static inline __attribute__((always_inline)) int ends_with_context(__u32 holding)
{
    return holding == HOLDING_DEVICE || holding == HOLDING_ARRAY || holding == HOLDING_MANAGED ||
           holding == HOLDING_PINNED || holding == HOLDING_REGISTERED || holding == HOLDING_IMPORTED ||
           holding == HOLDING_EXTERNAL;
}

/* Memory that ends with a reset of its HIP device: hipDeviceReset() frees the device's own memory (MemObjMap::Purge()
 * of ROCm 5.7 to 7) and its pools. Host memory belongs to all devices. For physical memory it is unknown. */
static inline __attribute__((always_inline)) int ends_with_device(__u32 holding)
{
    return holding == HOLDING_DEVICE || holding == HOLDING_ARRAY || holding == HOLDING_POOL ||
           holding == HOLDING_IMPORTED;
}

/* True for device memory, of which each byte counts once. */
static inline __attribute__((always_inline)) int is_device_memory(__u32 holding)
{
    return holding == HOLDING_DEVICE || holding == HOLDING_ARRAY || holding == HOLDING_POOL || holding == HOLDING_VMM;
}

#endif
