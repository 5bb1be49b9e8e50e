/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Building blocks of probe handlers: one program per block, which does nothing else. */
#include "base/call.bpf.h"
#include "base/window.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct key {
    u64 word[3]; /* same size as the key of a per-process count */
};

struct record {
    u64 word[16];
};

#define MAP(NAME, TYPE, ENTRIES, KEY, VALUE)                                                                           \
    struct {                                                                                                           \
        __uint(type, TYPE);                                                                                            \
        __uint(max_entries, ENTRIES);                                                                                  \
        __type(key, KEY);                                                                                              \
        __type(value, VALUE);                                                                                          \
    } NAME SEC(".maps");

MAP(an_array, BPF_MAP_TYPE_ARRAY, 16, u32, u64)
MAP(a_hash, BPF_MAP_TYPE_HASH, 1024, u64, u64)
MAP(rows, BPF_MAP_TYPE_PERCPU_HASH, 1024, struct key, struct record)

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, u64[2]);
    __type(value, u64[7]); /* as large as gpualloc's entry for a live allocation */
} held SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct record);
} storage SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_STACK_TRACE);
    __uint(max_entries, 1024);
    __uint(key_size, sizeof(u32));
    __uint(value_size, 127 * sizeof(u64));
} traces SEC(".maps");

u64 sink = 0; /* keeps the compiler from removing the work */

static const struct record no_record = {};

#define BLOCK(NAME)                                                                                                    \
    SEC("uprobe.multi")                                                                                                \
    int NAME(struct pt_regs* ctx)

/* A block that yields a value. */
#define BLOCK_OF(NAME, VALUE)                                                                                          \
    BLOCK(NAME)                                                                                                        \
    {                                                                                                                  \
        sink = (VALUE);                                                                                                \
        return 0;                                                                                                      \
    }

BLOCK(nothing)
{
    return 0;
}

BLOCK(guard)
{
    guard_begin();
    guard_end();
    return 0;
}

BLOCK_OF(task, bpf_get_current_task_btf()->tgid)
BLOCK_OF(cookie, bpf_get_attach_cookie(ctx))
BLOCK_OF(clock, bpf_ktime_get_ns())
BLOCK_OF(jiffies, bpf_jiffies64())
BLOCK_OF(stack_id, bpf_get_stackid(ctx, &traces, BPF_F_USER_STACK))

BLOCK(comm)
{
    char name[16];
    bpf_get_current_comm(name, sizeof(name));
    sink = name[0];
    return 0;
}

BLOCK(array_lookup)
{
    u32 key = 3;
    u64* value = bpf_map_lookup_elem(&an_array, &key);
    if (value)
        *value += 1;
    return 0;
}

BLOCK(hash_lookup)
{
    u64 key = 3;
    u64* value = bpf_map_lookup_elem(&a_hash, &key);
    if (value)
        *value += 1;
    else
        bpf_map_update_elem(&a_hash, &key, &sink, BPF_ANY);
    return 0;
}

BLOCK(hash_entry)
{
    u64 key[2] = {1, ctx->sp}, value[7] = {};
    if (!bpf_map_update_elem(&held, &key, &value, BPF_NOEXIST))
        bpf_map_delete_elem(&held, &key);
    return 0;
}

BLOCK(row)
{
    struct key key = {{1, 2, 3}};
    struct record* value = bpf_map_lookup_elem(&rows, &key);
    if (value)
        value->word[0] += 1;
    else
        bpf_map_update_elem(&rows, &key, &no_record, BPF_ANY);
    return 0;
}

BLOCK(task_storage)
{
    struct record* value =
        bpf_task_storage_get(&storage, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (value)
        value->word[0] += 1;
    return 0;
}

/* Reads this many words of user memory. */
#define BLOCK_READ(NAME, WORDS)                                                                                        \
    BLOCK(NAME)                                                                                                        \
    {                                                                                                                  \
        u64 value[WORDS] = {};                                                                                         \
        bpf_probe_read_user(value, sizeof(value), (void*)ctx->sp);                                                     \
        sink = value[WORDS - 1];                                                                                       \
        return 0;                                                                                                      \
    }

BLOCK_READ(read_8, 1)
BLOCK_READ(read_24, 3)

BLOCK(read_2048)
{
    struct window* window = window_of_cpu();
    if (window)
        bpf_probe_read_user(window->word, sizeof(window->word), (void*)ctx->sp);
    return 0;
}

BLOCK(ring_128)
{
    struct record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record)
        return 0;
    record->word[0] = 1;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 0;
}

BLOCK(line)
{
    u32 first = 0;
    u64 number;
    struct line* line = reserve_line(&number);
    struct line_positions* positions = bpf_map_lookup_elem(&lines, &first);
    if (!line || !positions)
        return 0;
    line->event.time_ns = 1;
    publish_line(line, number);
    positions->consumed = number + 1; /* marks the line as read, since there is no reader */
    return 0;
}
