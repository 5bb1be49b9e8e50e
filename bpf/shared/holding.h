/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Live allocations of processes, with one table entry per allocation. */
#ifndef GPUSNOOP_HOLDING_H
#define GPUSNOOP_HOLDING_H

#include <linux/types.h>

#include "probe.h"
#include "process.h"

/* Keys of the tables about a process's memory. The tables are tries, because a trie uses memory only for existing
 * entries, while a hash also uses 16 bytes per possible entry. */

/* The address space of a process that uses the driver. When a context ends, its memory is freed, but we do not know
 * which ranges of addresses belonged to the context. So all ranges of the process are made invalid: all keys contain
 * the process's epoch, and the epoch is incremented. The front end deletes the entries of old epochs. */
struct address_space {
    __u32 epoch;
    __u32 whole; /* nonzero if the process has been traced since its first call, so that all its ranges are known: host
                    memory outside of them is then pageable */
    __u64 entries; /* number of entries of the table `ranges` that are charged to the process in this epoch
                      (entries_for()) */
};

/* Key of an address or a handle, with all bits significant. Without `prefix`, the size of the key is a multiple of 8
 * bytes. The reason is that a trie stores the value directly after the key, and atomic additions to the value must not
 * cross cache lines. */
struct place_key {
    __u32 prefix; /* WHOLE_PLACE */
    struct image image;
    __u32 epoch; /* address_space.epoch in the tables of kinds/address.bpf.h; 0 in all other tables */
    __u32 zero;
    __u64 number;
} __attribute__((packed, aligned(4)));

#define WHOLE_PLACE 192

/* Key of one block of a range. A range of addresses is split into blocks of 2^n bytes that begin at a multiple of 2^n,
 * so all addresses of a block have the same prefix. */
struct range_key {
    __u32 prefix; /* number of significant bits after this field */
    struct image image;
    __u32 epoch;
    __u64 address; /* most significant byte first */
};

/* Kinds of numbers in held_key. They are distinguished because an address and a handle, or two handles of different
 * kinds, may be equal. */
enum space {
    SPACE_ADDRESS,
    SPACE_ARRAY,
    SPACE_PHYSICAL, /* our own ids, because the driver reuses handles of physical memory that is still mapped */
    SPACE_RESERVED,
    SPACE_EXTERNAL,
    SPACE_POOL,
};

/* Position of enum space in held_key.place, above all bits of a user address. With five-level page tables, user
 * addresses have 56 bits. */
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

#define HELD_IN_HASH (1 << 17) /* capacity of the hash; if it is full, further entries are stored in a trie */

struct held_key {
    struct image image;
    __u64 place; /* address or handle, with its enum space in the top bits */
};

/* With its key and the kernel's overhead, an entry takes 128 bytes, which is one of the allocator's sizes. A larger
 * entry would take 192 bytes. Fields that struct call_key also has are copied from there, so they are unset if the tool
 * does not group calls by them. */
struct held {
    __u64 bytes;
    __u64 since_ns; /* time of the allocation, CLOCK_MONOTONIC */
    __u64 caller;
    struct cgroups cgroups;
    __u32 tid;
    __s32 stack;
    __u32 context; /* our id for the context that owns the memory; 0: none, or unknown */
    __u8 holding;
    __u8 device;
    __u16 function;
};

/* Totals of a process's live memory. They include only allocations that were seen. */
struct held_bytes {
    __u64 now; /* bytes of live device memory */
    __u64 peak;
    __u64 entries; /* number of live allocations of any kind of memory */
};

struct holding_record {
    __u32 type;
    __u32 context; /* with RECORD_CONTEXT_ENDED, our id for the context; 0: unknown */
    struct held_key key;
    struct held held; /* with RECORD_REPLACED, the old allocation */
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
 * (MemObjMap::Purge() in ROCm 5.7 to 7) and its pools. Host memory belongs to all devices. We do not know whether a
 * reset frees physical memory. */
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
