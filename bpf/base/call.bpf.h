/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Call counting: adds each call to a row of the table `calls`, or, with option -e, sends one record per call. */
#ifndef GPUSNOOP_CALL_BPF_H
#define GPUSNOOP_CALL_BPF_H

#include "base/common.bpf.h"
#include "base/machine.bpf.h"
#include "base/process.bpf.h"
#include "base/share.bpf.h"
#include "base/thread.bpf.h"
#include "shared/call.h"
#include "shared/histogram.h"

/* Lines: the records of option -e, one per call. -e is the most expensive mode. Writing a record to this array takes 20
 * ns, against 105 ns for the kernel's ring buffer, because the array needs no lock and no BPF helper. Lines are in the
 * order in which their slots were reserved. Records of other types go to the ring buffer, which the front end reads
 * before the lines. The front end sets the capacity. */

MMAPABLE_ARRAY_MAP(lines, 1, struct line);

const volatile __u32 line_places = 1;
const volatile __u64 line_wake = 0; /* the reader is woken when (number of unread lines & line_wake) is 0 */

#define LINE_TRIES 16 /* maximum attempts to reserve a slot; each fails only if another CPU takes that slot */

/* Reserves a slot for a line. Returns NULL if all slots hold unread lines, or if all attempts failed. */
INLINE struct line* reserve_line(u64* number)
{
    u32 first = 0;
    struct line_positions* positions = bpf_map_lookup_elem(&lines, &first);
    if (!positions)
        return 0;
    for (int i = 0; i < LINE_TRIES; i++) {
        u64 sent = *(volatile u64*)&positions->reserved;
        if (sent - *(volatile u64*)&positions->consumed >= line_places)
            return 0;
        if (__sync_val_compare_and_swap(&positions->reserved, sent, sent + 1) != sent)
            continue;
        *number = sent;
        u32 at = 1 + (u32)(sent % line_places);
        return bpf_map_lookup_elem(&lines, &at);
    }
    return 0;
}

/* Wakes the reader, which waits on the ring buffer, by reserving and discarding a record there. */
OWN_FRAME int wake_reader(void)
{
    void* nothing = bpf_ringbuf_reserve(&ring, sizeof(u64), 0);
    if (nothing)
        bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
    return 0;
}

/* Publishes a line. The reader stops at the first line that is not published. The reader is woken only when the number
 * of unread lines reaches a multiple of an eighth of the capacity, for the reason given at ring_flags(). */
INLINE void publish_line(struct line* line, u64 number)
{
    store_ordered(&line->published, number + 1);
    u32 first = 0;
    struct line_positions* positions = bpf_map_lookup_elem(&lines, &first);
    if (positions && !((number + 1 - *(volatile u64*)&positions->consumed) & line_wake))
        wake_reader();
}

/* Rows of calls, with the counters that all kinds of calls share. Each kind adds its own counters (add_kind_sums()). */

/* Fields by which calls are grouped into rows. A field that is not used for grouping costs nothing and adds no rows. */
const volatile bool per_thread = false;
const volatile bool per_stream = false;
const volatile bool per_device = false;
const volatile bool per_function = false;
const volatile bool per_stack = false;
const volatile bool per_cgroup = false;
const volatile bool per_size = false; /* group copies and allocations by size */

const volatile bool emit_events = false;
const volatile bool need_return = false; /* set if results or latencies are reported */
const volatile bool only_failed = false;
const volatile bool measure_latency = false;
const volatile __u64 least_ns = 0;         /* calls shorter than this are not counted, if durations are measured */
const volatile __u64 duration_unit_ns = 1; /* unit of the duration histogram, in ns */

/* True if the entry time of every call is needed, even of calls without a return probe. */
INLINE bool needs_entry_time(void)
{
    return emit_events || (measure_latency && need_return);
}

/* Rows are allocated on demand, because preallocating them would take 64 MiB on a machine with 256 CPUs. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, 16384); /* the front end sets this number and the key size */
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(key_size, sizeof(struct call_key));
    __uint(value_size, sizeof(struct call_stats));
} calls SEC(".maps");

const volatile __u32 call_key_bytes = sizeof(struct call_key); /* size of the keys of `calls` */
const volatile __u32 front_bits = 1; /* log2 of the cached rows per CPU; set by the front end, at least 1 */

/* Cache of the table `calls`: 1 << front_bits rows per CPU. A row's index is computed from the key (12 ns, against 72
 * to 100 ns for a lookup in `calls`). A row belongs to the first key that claims it. The front end frees the row when
 * the process has exited or the generation has ended. If the row belongs to another key, the call is counted in
 * `calls`. The front end sets the capacity. */
MMAPABLE_ARRAY_MAP(front, 1, struct front_row);

/* The current generation of rows, in which calls are counted: 0 or CALL_GENERATION. When the table fills up, the front
 * end switches to the other generation. It waits until every program that has read the old value has ended. Then the
 * rows of the old generation no longer change, and the front end drains them. Rows of the current generation cannot be
 * drained: a program that has looked up a row may still add to it after the front end has read and deleted the row. By
 * then, the row's memory may belong to another key. */
__u8 generation = 0;

STACK_TRACE_MAP(stacks, 16384, 127);

/* Arguments of a batched copy: addresses of its lists of sizes, destinations and sources. */
struct copy_lists {
    u64 bytes;
    u64 destination;
    u64 source;
};

struct call {
    struct call_key key;
    union {
        struct launch_shape shape;
        struct copy copy;
        struct memory_call memory;
        struct graph_call graph;
        struct copy_lists lists; /* used while the copies of a batch are read individually */
        u64 word[4];             /* for the program's own use while the call is in flight */
    };
};

INLINE void describe_call(struct call_event* event, u32 type, struct task_struct* task, const struct call* call,
                          u64 entry_ns, u64 duration_ns)
{
    event->type = type;
    event->tid = task->pid;
    event->time_ns = entry_ns;
    event->duration_ns = duration_ns;
    event->key = call->key;
    event->shape = call->shape;
    read_comm(task, (u64*)event->comm);
}

INLINE void send_line(struct task_struct* task, const struct call* call, u64 entry_ns, u64 duration_ns)
{
    u64 number;
    struct line* line = reserve_line(&number);
    if (!line) {
        lose(LOSS_EVENT, 1);
        return;
    }
    describe_call(&line->event, RECORD_CALL, task, call, entry_ns, duration_ns);
    publish_line(line, number);
}

/* Called when the table `calls` is full. Sends the call to the front end, which counts it. */
INLINE void send_spill(struct task_struct* task, const struct call* call, u64 entry_ns, u64 duration_ns)
{
    struct call_event* event = bpf_ringbuf_reserve(&ring, sizeof(*event), 0);
    if (!event) {
        lose(LOSS_ROW, 1);
        return;
    }
    describe_call(event, RECORD_SPILL, task, call, entry_ns, duration_ns);
    bpf_ringbuf_submit(event, ring_flags(sizeof(*event)));
}

/* Hash of the process image and cgroups that this CPU last sent to the front end. Consecutive lines are usually from
 * the same process, which then need not be sent again. */
PERCPU_ARRAY_MAP(introduced_last, 1, u64);

/* Sends the line's process to the front end (introduce()), unless this CPU sent the same process last time. */
INLINE void introduce_caller(struct task_struct* task, const struct call_key* key)
{
    u32 first = 0;
    u64* last = bpf_map_lookup_elem(&introduced_last, &first);
    u64 hash =
        (*(const u64*)&key->image * 0x9e3779b97f4a7c15ULL ^ key->cgroups.v2) * 0x9e3779b97f4a7c15ULL ^ key->cgroups.v1;
    if (last && *last == hash)
        return;
    introduce(&key->image, key->cgroups);
    if (last)
        *last = hash;
}

const volatile bool name_threads = false; /* set if rows per thread show the thread's name */

struct thread_name {
    u64 word[2];
};

/* Names of threads that have rows, kept because /proc has no name once the thread has exited. If the front end shows
 * names, it sets a higher capacity. */
LRU_HASH_MAP(thread_names, 128, struct handle_number, struct thread_name);

/* Sends the process of a new row to the front end, and stores the thread's name. */
INLINE void introduce_row(struct task_struct* task, const struct call_key* key)
{
    introduce(&key->image, per_cgroup ? key->cgroups : cgroups_of(untrusted(task)));
    if (!name_threads)
        return;
    struct handle_number thread = {.image = key->image, .number = (u32)task->pid};
    struct thread_name name;
    read_comm(task, name.word);
    bpf_map_update_elem(&thread_names, &thread, &name, BPF_ANY);
}

/* Zeros for a new row. Global, because the stack has no room for them. */
struct call_stats no_calls = {};

/* If `keep` is 0, clears the detailed fields of a key. If all bits of `keep` are set, leaves the key unchanged.
 * CallSums in the front end clears the same fields. */
INLINE void make_coarse_unless(struct call_key* key, u64 keep)
{
    key->subject &= keep;
    key->stream &= keep;
    key->caller &= keep;
    key->cgroups.v2 &= keep;
    key->cgroups.v1 &= keep;
    key->tid &= keep;
    key->stack |= ~keep;
    key->flags &= keep | ~CALL_SUBJECT;
}

INLINE struct call_stats* new_row(struct task_struct* task, struct call_key* key)
{
    introduce_row(task, key);
    u64 image = word_of_image(&key->image);
    u32 admission =
        GUARDED && !GUARDED_CALLS ? admit_row_guarded(image, ENTRIES_OF(&calls)) : admit_row(image, ENTRIES_OF(&calls));
    if (admission == ROW_REFUSED)
        return 0;
    make_coarse_unless(key, opaque(admission == ROW_TAKEN ? ~0ULL : 0));
    bpf_map_update_elem(&calls, key, &no_calls, BPF_NOEXIST);
    return bpf_map_lookup_elem(&calls, key);
}

/* Claims a free row of the cache for this key. Returns the row's number + 1, or 0 if another task has already claimed
 * the row. */
INLINE u32 claim_front_row(const struct call_key* key, struct front_row* row, u32 at)
{
    u64* words = (u64*)&row->key;
    u32 taken = 0;
    guard_begin();
    if (!load_acquire(words)) { /* the row is free; the front end has cleared its counts */
        for (u32 i = 1; i < KEY_WORDS; i++)
            if (i * 8 < call_key_bytes)
                words[i] = key_word(key, i, call_key_bytes);
        /* The first word is written last, so that the front end sees the whole key or none. */
        store_ordered(words, key_word(key, 0, call_key_bytes));
        taken = at + 1;
    }
    guard_end();
    return taken;
}

/* Finds or claims the key's row in the cache of this CPU. Returns the row's number + 1, or 0 if another key owns the
 * row. */
INLINE u32 find_front_row(struct call_key* key)
{
    if (!per_stack && key->stack >= 0)
        return 0; /* calls with a sampled stack are too rare for the cache */
    u32 at = bpf_get_smp_processor_id() << front_bits | front_place(key, call_key_bytes, front_bits);
    struct front_row* row = bpf_map_lookup_elem(&front, &at);
    if (!row)
        return 0;
    u64 difference = 0;
    for (u32 i = 0; i < KEY_WORDS; i++)
        if (i * 8 < call_key_bytes)
            difference |= key_word(key, i, call_key_bytes) ^ key_word(&row->key, i, call_key_bytes);
    if (!difference)
        return at + 1;
    if (row->key.image.pid)
        return 0;
    introduce_row(bpf_get_current_task_btf(), key);
    return claim_front_row(key, row, at);
}

VERIFIED_ONCE u32 front_row_of(struct call_key* key)
{
    return key ? find_front_row(key) : 0;
}

/* Called only if a duration exceeds the row's maximum, which is rare. */
INLINE void update_max(struct call_stats* stats, u64 duration_ns)
{
    guard_begin();
    if (duration_ns > stats->v[CALL_MAX_NS])
        stats->v[CALL_MAX_NS] = duration_ns;
    guard_end();
}

INLINE void count(struct call_stats* stats, u64 times, u64 duration_ns)
{
    add(&stats->v[CALL_COUNT], times);
    if (measure_latency) {
        add(&stats->v[CALL_TOTAL_NS], duration_ns);
        if (duration_ns > stats->v[CALL_MAX_NS])
            update_max(stats, duration_ns);
    }
}

/* Adds to the counters that only this kind of call has. */
INLINE void add_kind_sums(struct call_stats* stats, const u64* v)
{
    for (u32 i = FIRST_KIND_FIGURE; i < CALL_FIGURES; i++)
        if (v[i])
            add(&stats->v[i], v[i]);
}

/* Adds `times` to the number of calls in the row of this call. Returns the row, so that the tool can add to its own
 * counters. Returns NULL if the call was sent to the front end as a record, or was lost. */
INLINE struct call_stats* count_call(struct task_struct* task, struct call* call, u64 times, u64 entry_ns,
                                     u64 duration_ns)
{
    if (emit_events) {
        introduce_caller(task, &call->key); /* key.cgroups is valid, because emit_events implies per_cgroup */
        send_line(task, call, entry_ns, duration_ns);
        return 0;
    }
    call->key.flags = (call->key.flags & ~CALL_GENERATION) | generation;
    struct call_stats* stats = bpf_map_lookup_elem(&calls, &call->key);
    if (!stats)
        stats = new_row(task, &call->key);
    if (!stats) {
        send_spill(task, call, entry_ns, duration_ns);
        return 0;
    }
    count(stats, times, duration_ns);
    return stats;
}

INLINE struct call_stats* count_in_front(struct call* call, u32 place, u64 times, u64 duration_ns)
{
    u32 at = place - 1;
    struct front_row* row = bpf_map_lookup_elem(&front, &at);
    if (!row)
        return 0;
    count(&row->stats, times, duration_ns);
    return &row->stats;
}

/* Like count_call(), for the most frequent kinds of calls. On kernels that support the cache (from 6.10 on), the
 * function may return NULL without having counted the call. The caller must then call count_argument(). */
INLINE struct call_stats* count_often(struct call* call, u64 times, u64 entry_ns, u64 duration_ns)
{
    if (!GUARDED)
        return count_call(bpf_get_current_task_btf(), call, times, entry_ns, duration_ns);
    if (emit_events)
        return 0;
    call->key.flags = (call->key.flags & ~CALL_GENERATION) | generation;
    return count_in_front(call, front_row_of(&call->key), times, duration_ns);
}

/* Counts a call that has no row in the cache. Called from VERIFIED_ONCE functions, whose arguments can be map keys only
 * from Linux 6.2 on (9ef40974a82a). This is no restriction here, because the cache requires 6.10. */
INLINE struct call_stats* count_argument(struct call* call, u64 times, u64 entry_ns, u64 duration_ns)
{
    return GUARDED && call ? count_call(bpf_get_current_task_btf(), call, times, entry_ns, duration_ns) : 0;
}

/* Does the work of count_often() and count_argument() inline. The calling function must leave enough stack for both,
 * and the kernel must support the cache. */
INLINE struct call_stats* count_argument_often(struct call* call, u64 times, u64 entry_ns, u64 duration_ns)
{
    if (!GUARDED || !call)
        return 0;
    struct call_stats* stats = 0;
    if (!emit_events) {
        call->key.flags = (call->key.flags & ~CALL_GENERATION) | generation;
        stats = count_in_front(call, find_front_row(&call->key), times, duration_ns);
    }
    return stats ?: count_call(bpf_get_current_task_btf(), call, times, entry_ns, duration_ns);
}

/* Divides only if the unit is not 1 ns: a 64-bit division takes as long as the rest of this function. */
INLINE u16 duration_bucket(u64 ns)
{
    return opaque(histogram_bucket(duration_unit_ns == 1 ? ns : ns / duration_unit_ns));
}

/* Reads the stack with preemption disabled, because the kernel collects it in a per-CPU buffer. */
INLINE void keep_stack(void* ctx, struct call_key* key)
{
    guard_begin();
    key->stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
    if (key->stack == -17 /* EEXIST */) {
        /* The kernel selects the slot of a stack by its hash, and another stack already occupies this slot. Without its
         * innermost address, the stack has a different hash and thus a different slot. */
        key->stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK | 1);
        if (key->stack >= 0)
            key->stack |= STACK_WITHOUT_FIRST;
    }
    guard_end();
    if (key->stack < 0)
        lose(LOSS_STACK, 1);
}

#endif
