/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Time between calls that launch, in parts: counted by its length, or told in lines. */
#ifndef GPUSNOOP_GAPS_BPF_H
#define GPUSNOOP_GAPS_BPF_H

#include "shared/gap.h"
#include "shared/histogram.h"
#include "state/thread_time.bpf.h"

const volatile bool count_gaps = false;
const volatile bool tell_gaps = false;
const volatile __u64 least_gap_ns = 0;
const volatile __u64 gap_unit_ns = 1;

/* The gap that a thread is in. */
struct open_gap {
    u64 since;          /* in ns of its time; 0: it is in none */
    u64 ns[TIME_PARTS]; /* of the thread, as it was then */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, PLACES_MAX); /* 1 where gaps are not asked for */
    __type(key, u32);
    __type(value, struct open_gap);
} gaps SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536); /* 1 where they are not counted */
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct gap_key);
    __type(value, struct gap_count);
} gap_counts SEC(".maps");

INLINE bool wants_gaps(void)
{
    return count_gaps || tell_gaps;
}

INLINE struct open_gap* gap_of(const struct thread_state* thread)
{
    u32 place = thread->place - 1;
    return bpf_map_lookup_elem(&gaps, &place);
}

/* Only their thread writes to a gap and to its counts. */
static __attribute__((noinline)) int begin_gap(const struct thread_state* thread, const struct thread_time* time)
{
    struct open_gap* gap = gap_of(thread);
    if (!gap)
        return 0;
    gap->since = time->now >> TIME_SINCE_SHIFT;
    __builtin_memcpy(gap->ns, time->ns, sizeof(gap->ns));
    return 0;
}

INLINE void count_gap(u32 place, const struct open_gap* gap, u64 took)
{
    static const struct gap_count none = {};
    struct gap_key key = {.place = place, .bucket = histogram_bucket(took / gap_unit_ns)};
    struct gap_count* count = bpf_map_lookup_elem(&gap_counts, &key);
    if (!count) {
        bpf_map_update_elem(&gap_counts, &key, &none, BPF_NOEXIST);
        count = bpf_map_lookup_elem(&gap_counts, &key);
    }
    if (!count) {
        lose(LOSS_GAP, 1);
        return;
    }
    for (u32 part = 0; part < TIME_PARTS; part++)
        count->ns[part] += gap->ns[part];
    count->count++;
}

INLINE void tell_gap(const struct open_gap* gap, const struct thread_time* time, u64 took)
{
    struct gap_record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        lose(LOSS_EVENT, 1);
        return;
    }
    struct task_struct* task = bpf_get_current_task_btf();
    record->type = RECORD_GAP;
    record->tid = time->tid;
    record->time_ns = time->begin_ns + gap->since;
    record->key.image = time->image;
    record->key.cgroups = time->cgroups;
    read_comm(task, (u64*)record->comm);
    record->gap_ns = took;
    __builtin_memcpy(record->ns, gap->ns, sizeof(record->ns));
    bpf_ringbuf_submit(record, ring_flags(sizeof(*record)));
}

/* How long it took is the sum of its parts: what is being added to them meanwhile is in the next one. */
static __attribute__((noinline)) int end_gap(const struct thread_state* thread, const struct thread_time* time)
{
    struct open_gap* gap = gap_of(thread);
    if (!gap || !gap->since)
        return 0;
    u64 took = 0;
    for (u32 part = 0; part < TIME_PARTS; part++) {
        gap->ns[part] = time->ns[part] - gap->ns[part];
        took += gap->ns[part];
    }
    if (took >= least_gap_ns) {
        if (count_gaps)
            count_gap(thread->place - 1, gap, took);
        if (tell_gaps)
            tell_gap(gap, time, took);
    }
    gap->since = 0;
    return 0;
}

/* A place may have been another thread's. */
INLINE void forget_gap(const struct thread_state* thread)
{
    struct open_gap* gap = gap_of(thread);
    if (gap)
        gap->since = 0;
}

#endif
