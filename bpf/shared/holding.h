/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What processes hold: one entry for each allocation that has not been freed. */
#ifndef GPUSNOOP_HOLDING_H
#define GPUSNOOP_HOLDING_H

#include <linux/types.h>

#include "probe.h"
#include "process.h"

/* Keys of tables about a process's memory. The tables are tries, which take memory only for entries that exist; a hash
 * takes 16 bytes for each possible one. */

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

/* Addresses, and handles of several kinds, may have the same number. */
enum space {
    SPACE_ADDRESS,
    SPACE_ARRAY,
    SPACE_PHYSICAL, /* numbered here: handles of physical memory are given out again while it is still mapped */
    SPACE_RESERVED,
    SPACE_EXTERNAL,
    SPACE_POOL,
};

#define SPACE_SHIFT 56 /* no address has so many bits: five-level page tables give 57, half of them to the kernel */

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

#define HELD_IN_HASH (1 << 17) /* entries; more are in a trie */

struct held_key {
    struct image image;
    __u64 place; /* address or handle, and on top of it its space */
};

/* Key, value and the kernel's own words make 128 bytes, which is a size that its allocator has: a byte more would cost
 * 64. What the view does not tell apart is as in its call's key. */
struct held {
    __u64 bytes;
    __u64 since_ns; /* CLOCK_MONOTONIC */
    __u64 caller;
    struct cgroups cgroups;
    __u32 tid;
    __s32 stack;
    __u32 context; /* number of the one that it ends with; 0 none, or unknown */
    __u8 holding;
    __u8 device;
    __u16 function;
};

/* What a process holds, as far as it was seen. */
struct held_bytes {
    __u64 now; /* memory of the device */
    __u64 peak;
    __u64 entries; /* of any kind of memory, in the table of allocations */
};

struct holding_record {
    __u32 type;
    __u32 context; /* RECORD_CONTEXT_ENDED: its number; 0 unknown */
    struct held_key key;
    struct held held; /* RECORD_REPLACED */
};

/* These go with the context that they were allocated in; all others are the process'. From the documentation of
 * cuCtxDestroy(), which says so of memory by cuMemCreate(), cuMemAllocAsync() and cuMemAllocFromPoolAsync(), too. */
static inline __attribute__((always_inline)) int ends_with_context(__u32 holding)
{
    return holding == HOLDING_DEVICE || holding == HOLDING_ARRAY || holding == HOLDING_MANAGED ||
           holding == HOLDING_PINNED || holding == HOLDING_REGISTERED || holding == HOLDING_IMPORTED ||
           holding == HOLDING_EXTERNAL;
}

/* ... and these with a device of HIP that is reset: hipDeviceReset() gives back what the device alone has
 * (MemObjMap::Purge() of ROCm 5.7 to 7) and its pools. Host memory is every device's; of physical memory it is not
 * known. */
static inline __attribute__((always_inline)) int ends_with_device(__u32 holding)
{
    return holding == HOLDING_DEVICE || holding == HOLDING_ARRAY || holding == HOLDING_POOL ||
           holding == HOLDING_IMPORTED;
}

/* Memory of the device, each byte once. */
static inline __attribute__((always_inline)) int is_device_memory(__u32 holding)
{
    return holding == HOLDING_DEVICE || holding == HOLDING_ARRAY || holding == HOLDING_POOL || holding == HOLDING_VMM;
}

#endif
