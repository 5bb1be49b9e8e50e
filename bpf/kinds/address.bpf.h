/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Kind of memory at an address, derived from allocation calls. The kind of memory that was allocated before attach
 * remains unknown. */
#ifndef GPUSNOOP_ADDRESS_BPF_H
#define GPUSNOOP_ADDRESS_BPF_H

#include "base/probe.bpf.h"
#include "base/share.bpf.h"
#include "shared/histogram.h"
#include "shared/holding.h"

HASH_MAP(address_spaces, 16384, struct image, struct address_space);

struct allocation {
    u64 bytes;
    u64 memory; /* enum memory */
};

LPM_TRIE_MAP(allocations, 1 << 18, struct place_key, struct allocation);

LPM_TRIE_MAP(physical_memory, 1 << 16, struct place_key, u64); /* handle -> enum memory */

#define RANGE_BITS_BEFORE_ADDRESS 96

LPM_TRIE_MAP(ranges, 1 << 20, struct range_key, u32); /* block of addresses -> enum memory */

INLINE struct address_space* address_space(struct task_struct* task, const struct image* image, bool first_call)
{
    struct address_space* space = bpf_map_lookup_elem(&address_spaces, image);
    if (space)
        return space;
    struct address_space new = {.whole = first_call && is_fully_traced(task) && HAS_LOOPS};
    introduce(image, cgroups_of(untrusted(task))); /* so that the front end deletes the entry when the process exits */
    bpf_map_update_elem(&address_spaces, image, &new,
                        BPF_NOEXIST); /* fails if another thread has just added the entry */
    space = bpf_map_lookup_elem(&address_spaces, image);
    if (!space)
        lose(LOSS_STATE, 1);
    return space;
}

struct range_walk {
    struct range_key key;
    u64 address;
    u64 end;
    u32 memory; /* kind of memory to set; MEMORY_UNKNOWN: remove the range */
    u32 blocks; /* number of blocks set or removed so far */
};

static long next_block(u32 index, struct range_walk* walk)
{
    u64 address = walk->address, left = walk->end - address;
    if (!left)
        return 1;
    u32 bits = log2_floor(left);
    if (address) {
        u32 aligned = log2_floor(address & -address);
        bits = bits < aligned ? bits : aligned;
    }
    walk->key.prefix = RANGE_BITS_BEFORE_ADDRESS + 64 - bits;
    walk->key.address = __builtin_bswap64(address);
    if (walk->memory == MEMORY_UNKNOWN)
        bpf_map_delete_elem(&ranges, &walk->key);
    else if (bpf_map_update_elem(&ranges, &walk->key, &walk->memory, BPF_ANY))
        lose(LOSS_STATE, 1);
    walk->address = address + (1ULL << bits);
    walk->blocks++;
    return 0;
}

#define RANGE_BLOCKS_MAX 128 /* higher than the number of blocks of any range */

/* Sets the kind of memory of a range, or removes the range. Returns the number of blocks (struct range_key) in the
 * range. */
VERIFIED_ONCE int set_range(const struct place_key* start, u64 bytes, u32 memory)
{
    if (!start || !bytes || start->number + bytes < start->number)
        return 0;
    struct range_walk walk = {.key = {.image = start->image, .epoch = start->epoch},
                              .address = start->number,
                              .end = start->number + bytes,
                              .memory = memory};
    if (HAS_LOOPS)
        bpf_loop(RANGE_BLOCKS_MAX, next_block, &walk, 0);
    return walk.blocks;
}

/* Each process may use up to a quarter of the table `ranges`. True if this process has used less. */
INLINE bool has_room(const struct address_space* space)
{
    return space->entries < ENTRIES_OF(&ranges) / 4;
}

/* Each allocation is charged as at least this many entries of `ranges`. The capacity of `ranges` is this many times
 * that of `allocations`. So the limit of has_room() also limits a process to a quarter of `allocations`. */
#define RANGES_OF_ALLOCATION 4

INLINE u64 entries_for(u32 blocks)
{
    return blocks > RANGES_OF_ALLOCATION ? blocks : RANGES_OF_ALLOCATION;
}

INLINE void add_allocation(const struct place_key* key, struct address_space* space, u64 bytes, u32 memory)
{
    struct allocation new = {.bytes = bytes, .memory = memory};
    if (!has_room(space) || bpf_map_update_elem(&allocations, key, &new, BPF_ANY)) {
        lose(LOSS_STATE, 1);
        return;
    }
    __sync_fetch_and_add(&space->entries, entries_for(set_range(key, bytes, memory)));
}

/* Returns the size of the removed allocation, or 0 if none was known. */
INLINE u64 remove_allocation(const struct place_key* key, struct address_space* space, u32* memory)
{
    struct allocation* found = bpf_map_lookup_elem(&allocations, key);
    if (!found)
        return 0;
    struct allocation old = *found;
    bpf_map_delete_elem(&allocations, key);
    u64 entries = entries_for(set_range(key, old.bytes, MEMORY_UNKNOWN));
    if (space->entries >= entries)
        __sync_fetch_and_add(&space->entries, -entries);
    *memory = old.memory;
    return old.bytes;
}

struct range_unmap {
    struct place_key key;
    struct address_space* space;
    u64 end;
};

static long unmap_range(u32 index, struct range_unmap* walk)
{
    u32 memory = 0;
    u64 bytes = walk->key.number < walk->end ? remove_allocation(&walk->key, walk->space, &memory) : 0;
    walk->key.number += bytes;
    return !bytes;
}

#define RANGES_UNMAPPED_MAX 4096 /* maximum number of mappings removed per call */

/* Removes mappings. One call may unmap several adjacent mappings. */
INLINE void unmap(const struct place_key* key, struct address_space* space, u64 bytes)
{
    struct range_unmap walk = {.key = *key, .space = space, .end = key->number + bytes};
    if (HAS_LOOPS)
        bpf_loop(RANGES_UNMAPPED_MAX, unmap_range, &walk, 0);
}

enum memory_word {
    MEMORY_CALL_OUT = FOLLOWED_ROW + 1,
    MEMORY_CALL_ADDRESS,
    MEMORY_CALL_BYTES,
    MEMORY_CALL_HANDLE,
    MEMORY_CALL_PITCH,
    MEMORY_CALL_ROWS, /* number of rows of that pitch */
    MEMORY_CALL_LOCATION,
    MEMORY_CALL_WAS, /* kind of the freed memory (enum memory), restored if the call fails */
    MEMORY_CALL_WAS_BYTES,
};

/* Removes freed memory at the entry of the call, because another thread may be given the address before the call
 * returns. */
INLINE int memory_entry_body(struct pt_regs* ctx)
{
    struct followed at;
    if (!follow_call(ctx, PART_MEMORY, &at))
        return 1;
    u32 kind = at.row->kind;
    struct image image = image_of(at.task);
    struct address_space* space = address_space(at.task, &image, kind == KIND_INIT);
    if (!space || kind == KIND_INIT)
        return ignore_return(&at);
    struct arguments arguments;
    begin_arguments(ctx, at.row, &arguments);
    u64* word = at.call->word;
    word[MEMORY_CALL_OUT] = read_argument(&arguments, at.row, ARG_OUT) + at.row->out_offset;
    word[MEMORY_CALL_ADDRESS] = WITHOUT_TAG(read_argument(&arguments, at.row, ARG_ADDRESS));
    word[MEMORY_CALL_BYTES] = read_argument(&arguments, at.row, ARG_BYTES);
    word[MEMORY_CALL_HANDLE] = read_argument(&arguments, at.row, ARG_HANDLE);
    word[MEMORY_CALL_PITCH] = read_argument(&arguments, at.row, ARG_PITCH) + at.row->pitch_offset;
    word[MEMORY_CALL_ROWS] =
        read_argument(&arguments, at.row, ARG_HEIGHT) * read_argument(&arguments, at.row, ARG_DEPTH);
    word[MEMORY_CALL_LOCATION] = read_argument(&arguments, at.row, ARG_LOCATION);
    if (arguments.error) {
        lose(LOSS_ARGUMENTS, 1);
        return ignore_return(&at);
    }
    struct place_key key = place_key(image, space->epoch, word[MEMORY_CALL_ADDRESS]);
    if (kind == KIND_FREE) {
        u32 memory = MEMORY_UNKNOWN;
        word[MEMORY_CALL_WAS_BYTES] = remove_allocation(&key, space, &memory);
        word[MEMORY_CALL_WAS] = memory;
    } else if (kind == KIND_UNMAP) {
        unmap(&key, space, word[MEMORY_CALL_BYTES]);
    }
    return 0;
}

INLINE u64 memory_of_location(u64 type)
{
    switch (type) {
    case 1: /* CU_MEM_LOCATION_TYPE_DEVICE */
        return MEMORY_DEVICE;
    case 2: /* HOST, HOST_NUMA, HOST_NUMA_CURRENT */
    case 3:
    case 4:
        return MEMORY_PINNED;
    }
    return MEMORY_UNKNOWN;
}

/* Returns the kind of the memory that the call has allocated, pinned or mapped. Returns MEMORY_UNKNOWN if there is
 * none, or if its kind is unknown. Sets key->number to the memory's address and *bytes to its size. */
INLINE u64 memory_made(const volatile struct probe_row* row, struct place_key* key, const u64* word, u64* bytes)
{
    u64 memory = MEMORY_UNKNOWN, *known;
    *bytes = word[MEMORY_CALL_BYTES];
    switch (row->kind) {
    case KIND_ALLOC:
        key->number = WITHOUT_TAG(read_word(word[MEMORY_CALL_OUT]));
        if (word[MEMORY_CALL_PITCH])
            *bytes = read_word(word[MEMORY_CALL_PITCH]) * word[MEMORY_CALL_ROWS];
        memory = key->number ? row->memory : MEMORY_UNKNOWN;
        break;
    case KIND_REGISTER_HOST:
        memory = MEMORY_PINNED;
        break;
    case KIND_PHYSICAL_NEW:
        key->number = read_word(word[MEMORY_CALL_OUT]);
        u64 made = memory_of_location(word[MEMORY_CALL_LOCATION]);
        if (made != MEMORY_UNKNOWN && PUT_SHARED(&physical_memory, SHARED_PHYSICAL_MEMORY, key, &made))
            lose(LOSS_STATE, 1);
        break;
    case KIND_PHYSICAL_FREE:
        key->number = word[MEMORY_CALL_HANDLE];
        DELETE_SHARED(&physical_memory, SHARED_PHYSICAL_MEMORY, key);
        break;
    case KIND_MAP:
        key->number = word[MEMORY_CALL_HANDLE];
        known = bpf_map_lookup_elem(&physical_memory, key);
        memory = known ? *known : MEMORY_UNKNOWN;
        key->number = word[MEMORY_CALL_ADDRESS];
        break;
    }
    return memory;
}

INLINE int memory_return_body(struct pt_regs* ctx)
{
    struct followed at;
    if (!followed_returns(ctx, PART_MEMORY, &at))
        return 0;
    const u64* word = at.call->word;
    u32 kind = at.row->kind;
    bool failed = (s32)PT_REGS_RC(ctx) != 0;
    struct image image = image_of(at.task);
    struct address_space* space = bpf_map_lookup_elem(&address_spaces, &image);
    if (!space)
        return 0;
    struct place_key key = place_key(image, space->epoch, word[MEMORY_CALL_ADDRESS]);
    u64 bytes = 0, memory = MEMORY_UNKNOWN;
    if (kind == KIND_CONTEXT_DESTROY && !failed) {
        __sync_fetch_and_add(&space->epoch, 1);
        space->whole = 0;
        space->entries = 0;
    } else if (kind == KIND_FREE && failed) {
        bytes = word[MEMORY_CALL_WAS_BYTES];
        memory = bytes ? word[MEMORY_CALL_WAS] : MEMORY_UNKNOWN;
    } else if (!failed) {
        memory = memory_made(at.row, &key, word, &bytes);
    }
    FORGET(memory);
    if (memory != MEMORY_UNKNOWN)
        add_allocation(&key, space, bytes, memory);
    return 0;
}

CALL_PROGRAMS(memory, memory_entry_body, memory_return_body)

#define VM_READ 1
#define VM_WRITE 2
#define S_IFMT 0170000
#define S_IFREG 0100000

/* Sets *host to 1 if the mapping is host memory: accessible, and either anonymous or of a regular file. This excludes
 * reserved addresses, which are not accessible, and mappings by drivers, whose file is a character device. */
static long classify_vma(struct task_struct* task, struct vm_area_struct* vma, u64* host)
{
    u64 mode = S_IFREG;
    struct file* file = vma->vm_file;
    if (file)
        mode = file->f_inode->i_mode;
    FORGET(mode);
    *host = is_zero((mode & S_IFMT) ^ S_IFREG) & is_nonzero(vma->vm_flags & (VM_READ | VM_WRITE));
    return 0;
}

/* True if an address is in host memory. Also returns false while another thread changes the mappings, because BPF
 * programs cannot wait for the lock of the mappings. */
INLINE bool is_host_mapping(u64 address)
{
    u64 host = 0;
    if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_find_vma))
        bpf_find_vma(bpf_get_current_task_btf(), address, classify_vma, &host, 0);
    return host;
}

/* Returns the kind of memory at an address. `expected` is MEMORY_HOST or MEMORY_DEVICE if the called function implies
 * this kind, else MEMORY_UNKNOWN. */
VERIFIED_ONCE u32 memory_at(const struct image* owner, u64 address, u32 expected)
{
    if (!owner)
        return MEMORY_UNKNOWN;
    struct image image = *owner;
    struct address_space* space = bpf_map_lookup_elem(&address_spaces, &image);
    address = WITHOUT_TAG(address);
    struct range_key key = {.prefix = RANGE_BITS_BEFORE_ADDRESS + 64,
                            .image = image,
                            .epoch = space ? space->epoch : 0,
                            .address = __builtin_bswap64(address)};
    u32* known = bpf_map_lookup_elem(&ranges, &key);
    u32 memory = MEMORY_UNKNOWN;
    if (known)
        memory = *known;
    else if (expected == MEMORY_DEVICE)
        memory = MEMORY_DEVICE;
    else if (expected == MEMORY_HOST || is_host_mapping(address))
        memory = space && space->whole ? MEMORY_PAGEABLE : MEMORY_HOST;
    return opaque(memory);
}

#endif
