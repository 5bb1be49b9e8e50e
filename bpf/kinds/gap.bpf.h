/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Gaps between launches, and the time that threads spend in calls. */
#ifndef GPUSNOOP_GAP_BPF_H
#define GPUSNOOP_GAP_BPF_H

#include "base/probe.bpf.h"
#include "kinds/context.bpf.h"
#include "kinds/state.bpf.h"
#include "kinds/wakers.bpf.h"
#include "shared/gap.h"
#include "shared/histogram.h"

/* Gaps between launching calls. The time of a gap is divided into parts (enum time_part). Gaps are counted in
 * histograms by length, or sent as one record per gap. */

const volatile bool count_gaps = false;
const volatile bool emit_gaps = false;
const volatile bool gaps_of_streams = false; /* measure gaps between launches into the same stream */
const volatile __u64 least_gap_ns = 0;
const volatile __u64 gap_unit_ns = 1;

/* If gaps are not counted, the front end reduces this map to 1 entry. */
HASH_MAP(gap_counts, 65536, struct gap_key, struct gap_count);

/* If gaps are not per stream, the front end reduces this map to 1 entry. */
HASH_MAP(stream_gaps, 65536, struct stream_place, struct open_period);

/* Words of an open call that describe its launch. */
#define LAUNCHES 1 /* row number in the probe table; 0: the call launches nothing, or is inside another call */
#define LAUNCHED 2 /* handle of the kernel or graph, if gaps are reported as lines */
#define STREAM 3   /* stream, if gaps are per stream */

INLINE bool wants_gaps(void)
{
    return count_gaps || emit_gaps;
}

INLINE struct gap_launch launch_of(const struct open_call* call)
{
    struct gap_launch launch = {.handle = call->word[LAUNCHED], .kind = probe_row(call->word[LAUNCHES])->kind};
    return launch;
}

/* Returns the gap that ends or begins at a call. */
INLINE struct open_period* gap_of_call(const struct thread_state* thread, const struct open_call* call)
{
    if (!gaps_of_streams)
        return gap_of(thread);
    struct stream_place key = {.stream = call->word[STREAM], .place = thread->place - 1};
    return bpf_map_lookup_elem(&stream_gaps, &key);
}

INLINE struct open_period* new_stream_gap(const struct thread_state* thread, const struct open_call* call)
{
    static const struct open_period none = {};
    struct stream_place key = {.stream = call->word[STREAM], .place = thread->place - 1};
    if (bpf_map_update_elem(&stream_gaps, &key, &none, BPF_NOEXIST))
        lose(LOSS_GAP, 1);
    return bpf_map_lookup_elem(&stream_gaps, &key);
}

/* No atomic operations are needed, because only the gap's own thread writes to the gap and to its counters. */
OWN_FRAME int begin_gap(const struct thread_state* thread, const struct thread_time* time, const struct open_call* call)
{
    struct open_period* gap = gap_of_call(thread, call);
    if (!gap && gaps_of_streams)
        gap = new_stream_gap(thread, call);
    if (!gap)
        return 0;
    if (emit_gaps)
        gap->before = launch_of(call);
    gap->since = time->now >> TIME_SINCE_SHIFT;
    __builtin_memcpy(gap->period.ns, time->ns, sizeof(time->ns));
    __builtin_memset(&gap->period.waker, 0, sizeof(gap->period.waker));
    return 0;
}

INLINE void count_gap(u32 place, u64 stream, const struct open_period* gap, u64 took)
{
    static const struct gap_count none = {};
    struct gap_key key = {.place = place, .bucket = histogram_bucket(took / gap_unit_ns), .stream = stream};
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
        count->ns[part] += gap->period.ns[part];
    count->count++;
}

INLINE void fill_wakers(struct gap_record* record)
{
    __builtin_memset(record->wakers, 0, sizeof(record->wakers));
    u32 tid = record->gap.waker.tid, known = 0;
    for (; known < WAKERS; known++) {
        const struct waking_thread* followed = tid ? followed_of(tid) : 0;
        if (!followed || !followed->known)
            break;
        record->wakers[known] = followed->before;
        tid = followed->before.waker.tid;
    }
    record->known = known;
}

#define CPUS_MAX 512

struct running_count {
    struct cfs_rq** queues; /* by CPU: run queue of the thread's cgroup; its field `rq` is the CPU's run queue */
    const u64* mask;        /* allowed CPUs, including offline ones */
    u32 running;
    u32 cpus;
};

static long count_cpu(u64 cpu, struct running_count* count)
{
    struct cfs_rq* queue = (void*)kernel_word(&count->queues[cpu]);
    struct rq* of_cpu = READ(queue, rq);
    if ((u64)READ(of_cpu, cpu) != cpu)
        return 1; /* no such CPU */
    if (kernel_word(&count->mask[cpu / 64]) >> cpu % 64 & 1 && READ(of_cpu, online)) {
        count->cpus++;
        count->running += READ(of_cpu, nr_running);
    }
    return 0;
}

OWN_FRAME int count_running(struct gap_record* record)
{
    struct task_struct* task = (void*)bpf_get_current_task();
    struct running_count count = {
        /* The field cfs_rq of struct task_group is read as a word, without its type. The type changes in Linux 7.3, and
         * the verifier does not allow the field to be used as an array. */
        .queues = (void*)kernel_word(&READ(task, se.cfs_rq, tg)->cfs_rq),
        .mask = (void*)task + bpf_core_field_offset(struct task_struct, cpus_mask),
    };
    if (HAS_LOOPS)
        bpf_loop(CPUS_MAX, count_cpu, &count, 0);
    record->running = count.running;
    record->cpus = count.cpus;
    return 0;
}

INLINE void send_gap(const struct open_period* gap, const struct thread_time* time, const struct open_call* call,
                     u64 took)
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
    record->gap = gap->period;
    record->before = gap->before;
    record->after = launch_of(call);
    record->zero = 0;
    fill_wakers(record);
    count_running(record);
    bpf_ringbuf_submit(record, ring_flags(sizeof(*record)));
}

/* Ends a gap, whose length is the sum of its parts. If time is added to a part while this function runs, that time
 * counts in the next gap. */
OWN_FRAME int end_gap(const struct thread_state* thread, const struct thread_time* time, const struct open_call* call)
{
    struct open_period* gap = gap_of_call(thread, call);
    if (!gap || !gap->since)
        return 0;
    u64 took = end_period(&gap->period, time);
    if (took >= least_gap_ns) {
        if (count_gaps)
            count_gap(thread->place - 1, gaps_of_streams ? call->word[STREAM] : 0, gap, took);
        if (emit_gaps)
            send_gap(gap, time, call, took);
    }
    gap->since = 0;
    return 0;
}

/* Discards the gap that was left open by an exited thread whose slot in the table of threads this thread now has. */
INLINE void forget_gap(const struct thread_state* thread)
{
    struct open_period* gap = gap_of(thread);
    if (gap)
        gap->since = 0;
}

/* Adds the duration of each CUDA call to a part of the thread's time (enum time_part). If calls are nested, only the
 * outermost counts. */

bool naming = false; /* set by the front end while it tracks runtime launches to find the names of driver handles */

#define AROUND 0 /* index of the open call's word that holds the thread's TIME_CALL_BITS at the call's entry */

INLINE u64 part_of_call(const volatile struct probe_row* row)
{
    switch (row->kind) {
    case KIND_LAUNCH:
    case KIND_LAUNCH_LEGACY:
    case KIND_LAUNCH_LIST:
    case KIND_LAUNCH_ITEMS:
    case KIND_GRAPH_LAUNCH:
    case KIND_HOST_FUNC:
        return TIME_LAUNCH;
    case KIND_COPY:
    case KIND_COPY_BATCH:
    case KIND_COPY_BATCH_3D:
        return TIME_COPY;
    case KIND_WAIT:
        return TIME_WAIT;
    case KIND_ALLOC:
    case KIND_REGISTER_HOST:
    case KIND_FREE:
    case KIND_PHYSICAL_NEW:
    case KIND_PHYSICAL_RETAIN:
    case KIND_PHYSICAL_FREE:
    case KIND_MAP:
    case KIND_UNMAP:
    case KIND_TRIM:
        return TIME_MEMORY;
    }
    return TIME_CALL;
}

INLINE u64 handle_of_launch(struct pt_regs* ctx, const volatile struct probe_row* row, struct task_struct* task,
                            struct thread_state* thread)
{
    struct runtime_call* around = naming ? inside_runtime(ctx, task, thread) : 0;
    if (around) {
        struct image image = image_of(task);
        name_launch(ctx, row, &image, around);
    }
    return row->kind == KIND_LAUNCH_LIST ? 0 : register_argument(ctx, row, ARG_FUNC);
}

/* Reads the call's stream (for a list, the stream of the first launch). Returns false if it is unreadable. */
INLINE bool read_stream(struct pt_regs* ctx, const volatile struct probe_row* row, u64* stream)
{
    struct arguments arguments;
    begin_arguments(ctx, row, &arguments);
    *stream = stream_argument(row, read_argument(&arguments, row, ARG_STREAM));
    if (arguments.error)
        lose(LOSS_ARGUMENTS, 1);
    return !arguments.error;
}

OWN_FRAME int begin_launch(struct pt_regs* ctx, struct thread_state* thread, struct open_call* call, u32 number)
{
    const volatile struct probe_row* row = probe_row(number);
    if (gaps_of_streams && !read_stream(ctx, row, &call->word[STREAM]))
        return 0;
    if (emit_gaps)
        call->word[LAUNCHED] = handle_of_launch(ctx, row, bpf_get_current_task_btf(), thread);
    call->word[LAUNCHES] = number;
    return 0;
}

INLINE int call_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = traced_row(ctx, task);
    if (!number)
        return 1;
    struct thread_state* thread = thread_state_create(task);
    struct open_call* call = open_call_in(ctx, thread, PART_COUNT);
    if (!call)
        return 0;
    if (!thread->place) {
        begin_time(thread);
        if (wants_gaps())
            forget_gap(thread);
    }
    struct thread_time* time = time_of(thread);
    if (!time)
        return 0;
    sync_on_cpu(task, thread, time);
    u64 around = is_inside_call(thread, call) ? time->now & TIME_CALL_BITS : 0;
    call->word[AROUND] = around;
    const volatile struct probe_row* row = probe_row(number);
    u64 part = part_of_call(row);
    time->apis |= 1U << (row->layer & 7);
    call->word[LAUNCHES] = 0;
    if (wants_gaps() && !around && part == TIME_LAUNCH)
        begin_launch(ctx, thread, call, number);
    switch_part(time, TIME_CALL_BITS, around ?: part << TIME_CALL_SHIFT, 0, UP_TO_NOW);
    if (wants_gaps() && call->word[LAUNCHES])
        end_gap(thread, time, call);
    return 0;
}

INLINE void call_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct thread_state* thread = thread_state(task);
    struct open_call* call = thread ? close_call(ctx, thread, PART_COUNT) : 0;
    struct thread_time* time = call ? time_of(thread) : 0;
    if (time) {
        sync_on_cpu(task, thread, time);
        switch_part(time, TIME_CALL_BITS, call->word[AROUND], 0, UP_TO_NOW);
        if (wants_gaps() && call->word[LAUNCHES])
            begin_gap(thread, time, call);
    } else if (!call) {
        lose_unmatched_return(task, false);
    }
}

/* Records the NCCL calls of a thread that uses CUDA. A thread's time in an NCCL call is not shown as a separate part.
 * But when the thread waits for the device later, it may be waiting for the NCCL call's work. */
INLINE int collective_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = traced_row(ctx, task);
    struct thread_time* time = number ? time_of(thread_state(task)) : 0;
    if (time) {
        time->collective = number;
        time->collectives++;
    }
    return 1;
}

ENTRY_PROGRAM(collective_entry, collective_body)

CALL_PROGRAMS(call, call_entry_body, call_return_body)
ENTRY_PROGRAM(mark_entry, mark_body)

#endif
