/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Calls, counted in rows of a table or sent as one record each. */
#ifndef GPUSNOOP_CALL_BPF_H
#define GPUSNOOP_CALL_BPF_H

#include "base/common.bpf.h"
#include "base/machine.bpf.h"
#include "base/process.bpf.h"
#include "base/share.bpf.h"
#include "base/thread.bpf.h"
#include "shared/call.h"
#include "shared/histogram.h"

/* One record per call, for -e: the dearest thing that a tool does. In the kernel's ring buffer a record of that size
 * takes 105 ns, here 20: no lock, no helper. Lines are in the order in which they got their places, as there; what else
 * is sent goes there, and is read first. The front end sets how many entries there are. */

MMAPABLE_ARRAY_MAP(lines, 1, struct line);

const volatile __u32 line_places = 1;
const volatile __u64 line_wake = 0; /* bits of their number; see publish_line() */

#define LINE_TRIES 16 /* to be the one that takes the next place: each failure is another CPU's success */

/* 0 where there is none that has been read. */
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

/* The reader waits for the ring buffer, and finds nothing there. */
OWN_FRAME int wake_reader(void)
{
    void* nothing = bpf_ringbuf_reserve(&ring, sizeof(u64), 0);
    if (nothing)
        bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
    return 0;
}

/* The line can be read; before, the reader stops at its place. The line that makes it an eighth more wakes the reader,
 * as with ring_flags(). */
INLINE void publish_line(struct line* line, u64 number)
{
    store_ordered(&line->published, number + 1);
    u32 first = 0;
    struct line_positions* positions = bpf_map_lookup_elem(&lines, &first);
    if (positions && !((number + 1 - *(volatile u64*)&positions->consumed) & line_wake))
        wake_reader();
}

/* Counting calls of any kind: in rows of a table, or as one record each. What a tool tells of a call beyond that is its
 * own. */

/* What the chosen view tells apart; a thing that is not asked for costs nothing and makes no rows. */
const volatile bool per_thread = false;
const volatile bool per_stream = false;
const volatile bool per_device = false;
const volatile bool per_function = false;
const volatile bool per_stack = false;
const volatile bool per_cgroup = false;
const volatile bool per_size = false; /* of copies and memory */

const volatile bool emit_events = false;
const volatile bool need_return = false; /* result or latency */
const volatile bool only_failed = false;
const volatile bool measure_latency = false;
const volatile __u64 least_ns = 0;         /* of calls with a duration, those that are shorter are left out */
const volatile __u64 duration_unit_ns = 1; /* what buckets of the duration count in */

/* The time of its entry is part of a call, also of one whose return nobody waits for. */
INLINE bool needs_entry_time(void)
{
    return emit_events || (measure_latency && need_return);
}

/* A row gets its memory when it comes: with 256 CPUs all of them would take 64 MiB. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, 16384); /* set by the front end, as is how much of the key counts */
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(key_size, sizeof(struct call_key));
    __uint(value_size, sizeof(struct call_stats));
} calls SEC(".maps");

const volatile __u32 call_key_bytes = sizeof(struct call_key); /* as the table's keys are long */
const volatile __u32 front_bits = 1;                           /* at least */

/* In front of the table, 1 << front_bits rows for each CPU. One is found by arithmetic alone (12 ns; in the table 72 to
 * 100) and belongs to the first key that comes to it, until the front end gives it back: it does so with rows of
 * processes that have ended, and of generations that are over. The others go to the table. The front end sets how many
 * entries there are. */
MMAPABLE_ARRAY_MAP(front, 1, struct front_row);

/* 0 or CALL_GENERATION: calls count in rows of this one. The front end changes it when the table fills up, waits until
 * no program that has read the old one runs any more, and may then take the rows of that one out: nobody adds to them.
 * It could not do so with a row that is in use: a program that has looked it up adds to it after it has been read and
 * deleted, and by then another key may have its place. */
__u8 generation = 0;

STACK_TRACE_MAP(stacks, 16384, 127);

/* Addresses of the lists of a batch of copies. */
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
        struct copy_lists lists; /* of a batch, while its copies are read one by one */
        u64 word[4];             /* the program's own, until the call returns */
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

/* A call by itself, as the table is full: the front end has more room. */
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

/* Of each CPU: the image and its cgroups that were introduced there last, as one word, for a line is mostly of the same
 * process as the one before it. */
PERCPU_ARRAY_MAP(introduced_last, 1, u64);

/* Before each line: whose it is. */
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

const volatile bool name_threads = false; /* rows by thread show its name */

struct thread_name {
    u64 word[2];
};

/* Names of threads that have rows. The front end cannot read a name from /proc once its thread has exited. It
 * sets more entries if it shows names. */
LRU_HASH_MAP(thread_names, 128, struct handle_number, struct thread_name);

/* Sends the process of a new row to the front end, and keeps the name of its thread. */
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

/* Not on the stack, which is short. */
struct call_stats no_calls = {};

/* A row of less detail: CallSums of the front end makes the same. keep: all bits, or none. */
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

/* A row in front that was free belongs to this key, + 1; 0 where another task has come before. */
INLINE u32 claim_front_row(const struct call_key* key, struct front_row* row, u32 at)
{
    u64* words = (u64*)&row->key;
    u32 taken = 0;
    guard_begin();
    if (!load_acquire(words)) { /* the front end has cleared what was counted before it gave the row back */
        for (u32 i = 1; i < KEY_WORDS; i++)
            if (i * 8 < call_key_bytes)
                words[i] = key_word(key, i, call_key_bytes);
        /* The front end, which reads it meanwhile, sees the whole key, or none. */
        store_ordered(words, key_word(key, 0, call_key_bytes));
        taken = at + 1;
    }
    guard_end();
    return taken;
}

/* Which of the rows in front a key has or takes, + 1; 0 where another key has its place. Each CPU has rows of its own.
 */
INLINE u32 find_front_row(struct call_key* key)
{
    if (!per_stack && key->stack >= 0)
        return 0; /* a sample: it does not come often */
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

/* Seldom, as it gets longer each time. */
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

/* Adds the sums of a call's kind. */
INLINE void add_kind_sums(struct call_stats* stats, const u64* v)
{
    for (u32 i = FIRST_KIND_FIGURE; i < CALL_FIGURES; i++)
        if (v[i])
            add(&stats->v[i], v[i]);
}

/* The row of a call, with the call counted `times`: the tool adds what it has of its own. 0 where the call has gone to
 * the front end by itself, or is lost. */
INLINE struct call_stats* count_call(struct task_struct* task, struct call* call, u64 times, u64 entry_ns,
                                     u64 duration_ns)
{
    if (emit_events) {
        introduce_caller(task, &call->key); /* per_cgroup, in lines */
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

/* The same of the calls that are made most often. Where there are rows in front, 0 also stands for a call that is to be
 * counted by count_argument(). */
INLINE struct call_stats* count_often(struct call* call, u64 times, u64 entry_ns, u64 duration_ns)
{
    if (!GUARDED)
        return count_call(bpf_get_current_task_btf(), call, times, entry_ns, duration_ns);
    if (emit_events)
        return 0;
    call->key.flags = (call->key.flags & ~CALL_GENERATION) | generation;
    return count_in_front(call, front_row_of(&call->key), times, duration_ns);
}

/* For functions that count what has no row in front, and are verified once: their arguments may be keys of a map since
 * 6.2 (9ef40974a82a), and there are rows in front since 6.10. */
INLINE struct call_stats* count_argument(struct call* call, u64 times, u64 entry_ns, u64 duration_ns)
{
    return GUARDED && call ? count_call(bpf_get_current_task_btf(), call, times, entry_ns, duration_ns) : 0;
}

/* Both in one, for a function whose callers leave room for it on the stack. */
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

/* A 64-bit division takes as long as the rest of this. */
INLINE u16 duration_bucket(u64 ns)
{
    return opaque(histogram_bucket(duration_unit_ns == 1 ? ns : ns / duration_unit_ns));
}

/* Under the guard: what the kernel gathers a stack in is the CPU's, too. */
INLINE void keep_stack(void* ctx, struct call_key* key)
{
    guard_begin();
    key->stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
    if (key->stack == -17 /* EEXIST */) {
        /* Another stack has its place, which its hash decides: without its innermost address it has another one. */
        key->stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK | 1);
        if (key->stack >= 0)
            key->stack |= STACK_WITHOUT_FIRST;
    }
    guard_end();
    if (key->stack < 0)
        lose(LOSS_STACK, 1);
}

#endif
