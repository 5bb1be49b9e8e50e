/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* State that calls set for later calls: names of kernels, and captures of streams. */
#ifndef GPUSNOOP_STATE_BPF_H
#define GPUSNOOP_STATE_BPF_H

#include "base/common.bpf.h"
#include "base/probe.bpf.h"
#include "base/process.bpf.h"
#include "base/share.bpf.h"
#include "base/thread.bpf.h"
#include "shared/graph.h"
#include "shared/histogram.h"
#include "shared/names.h"

/* Kernel names. A name is read when the traced program looks up or registers the kernel, because launches pass only a
 * handle. */

INLINE void fill_name(struct name_record* record, const struct name_record* from, s32 length, u32 capacity)
{
    *record = *from;
    record->type = RECORD_NAME;
    record->length = length;
    record->capacity = capacity;
}

/* Records that were not sent through the ring buffer, because they did not fit, or because they are registrations and
 * the ring buffer was half full. The front end drains this map when it needs a name. It sets a higher capacity if it
 * shows names. */
HASH_MAP(unsent_names, 1, struct handle_number, struct name_record);

INLINE void keep_unsent(const struct name_record* from)
{
    struct handle_number key = {.image = from->image, .number = from->handle};
    struct name_record record;
    fill_name(&record, from, 0, 0);
    /* The string that was passed to a lookup belongs to the caller, and may no longer be valid when the front end reads
     * it. */
    if (record.source == NAME_LOOKUP)
        record.name_address = 0;
    if (bpf_map_update_elem(&unsent_names, &key, &record, BPF_ANY))
        lose(LOSS_NAME, 1);
}

enum sending { NAME_SENT, NAME_TOO_LONG, RING_FULL };

/* Sends one record with a name of at most `bytes` bytes. If the name's page is not in memory, the front end must read
 * the name. It is then woken at once, because the process may exit. */
#define SEND_NAME(from, bytes)                                                                                         \
    ({                                                                                                                 \
        struct {                                                                                                       \
            struct name_record record;                                                                                 \
            char name[bytes];                                                                                          \
        }* sent = bpf_ringbuf_reserve(&ring, sizeof(*sent), 0);                                                        \
        enum sending outcome = RING_FULL;                                                                              \
        if (sent) {                                                                                                    \
            s32 length = bpf_probe_read_user_str(sent->name, bytes, (void*)(from)->name_address);                      \
            outcome = length == (bytes) && (bytes) < 4096 ? NAME_TOO_LONG : NAME_SENT;                                 \
            fill_name(&sent->record, from, length, bytes);                                                             \
            if (outcome == NAME_TOO_LONG)                                                                              \
                bpf_ringbuf_discard(sent, BPF_RB_NO_WAKEUP);                                                           \
            else                                                                                                       \
                bpf_ringbuf_submit(sent, length > 0 ? ring_flags(sizeof(*sent)) : BPF_RB_FORCE_WAKEUP);                \
        }                                                                                                              \
        outcome;                                                                                                       \
    })

/* Sends a name in the smallest of three record sizes, because thousands of names must fit in the ring buffer. Most
 * names are short, but names of template kernels take kilobytes. */
INLINE void send_name(const struct name_record* from)
{
    enum sending outcome = SEND_NAME(from, 128);
    if (outcome == NAME_TOO_LONG)
        outcome = SEND_NAME(from, 1024);
    if (outcome == NAME_TOO_LONG)
        outcome = SEND_NAME(from, 4096);
    if (outcome == RING_FULL)
        keep_unsent(from);
}

/* PyTorch 2.6 registers 19,425 kernels in 0.4 s and launches a few hundred of them. The names remain in memory as long
 * as the kernels are registered. So if the ring buffer is half full, the front end reads names later, and only if it
 * needs them. */
INLINE void send_registration(const struct name_record* from)
{
    if (ring_is_half_full())
        keep_unsent(from);
    else
        send_name(from);
}

INLINE void send_alias(const struct name_record* from)
{
    struct name_record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        keep_unsent(from);
        return;
    }
    fill_name(record, from, 0, 0);
    /* The reader is woken at once, so that it can read a host stub's symbol before the process exits. */
    bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

/* Driver handle -> runtime handle of the same kernel, for the pairs that were already sent to the front end. If an
 * entry is evicted, the pair is sent again, which does no harm. */
LRU_HASH_MAP(correlated, 16384, struct handle_number, u64);

/* Records that a driver handle and `runtime_func` refer to the same kernel. Called when a driver launch is made inside
 * a runtime launch. */
INLINE void correlate(const struct image* image, u64 handle, u64 runtime_func)
{
    struct handle_number key = {.image = *image, .number = handle};
    u64* known = bpf_map_lookup_elem(&correlated, &key);
    if (known && *known == runtime_func)
        return;
    bpf_map_update_elem(&correlated, &key, &runtime_func, BPF_ANY);
    struct name_record record = {.source = NAME_CORRELATED, .image = *image, .handle = handle, .alias = runtime_func};
    send_alias(&record);
}

/* Matches driver launches to runtime launches, so that driver handles can be shown with the names of runtime
 * functions. */

INLINE u32 launches_of(struct pt_regs* ctx, const volatile struct probe_row* row)
{
    return row->kind == KIND_LAUNCH_LIST ? (u32)register_argument(ctx, row, ARG_COUNT) : 1;
}

INLINE void mark_launch(struct pt_regs* ctx, const volatile struct probe_row* row, struct task_struct* task)
{
    mark_runtime(ctx, task, register_argument(ctx, row, ARG_FUNC), launches_of(ctx, row));
}

/* Matches a driver launch to the runtime launch that encloses it. */
INLINE void name_launch(struct pt_regs* ctx, const volatile struct probe_row* row, const struct image* image,
                        struct runtime_call* call)
{
    call->calls--;
    /* A multi-device launch has a list of functions, not one function in a register. */
    if (row->kind == KIND_LAUNCH && call->func)
        correlate(image, register_argument(ctx, row, ARG_FUNC), call->func);
}

/* Tracks runtime launches for tools that count only driver launches, so that driver handles get names. Attached only
 * while names of driver handles may be missing. */
INLINE int mark_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = traced_row(ctx, task);
    if (number)
        mark_launch(ctx, probe_row(number), task);
    return 1;
}

/* Streams under capture. Launches into them are recorded into a graph, not executed. */

#define STREAM_PER_THREAD 2 /* CU_STREAM_PER_THREAD */

struct stream_key {
    struct image image;
    u64 stream;
    u64 thread; /* for a thread's own stream: the thread's id and start time, because ids are reused; else 0 */
};

/* A capture, which may spread to several streams. */
struct capture {
    u64 begun_ns;
    u64 graph;  /* handle of the graph that the capture extends; 0: the capture makes a new graph */
    u64 stream; /* stream on which the capture began and on which it must end */
    struct graph_nodes nodes;
};

HASH_MAP(captures, 16384, struct handle_number, struct capture);

/* Stream -> id of its capture. If that capture has ended, the stream is not under capture. This is not an LRU map,
 * because in such a map one process could evict the streams of others. Calls recorded on evicted streams would count as
 * executed. */
HASH_MAP(capturing_streams, 16384, struct stream_key, u64);

/* Event -> id of the capture in which it was recorded. A stream that waits for the event joins the capture. */
HASH_MAP(captured_events, 16384, struct handle_number, u64);

__u64 captures_begun = 0; /* number of captures so far, and the last id assigned */
/* Number of open captures. While it is 0, lookups are skipped. The front end subtracts the captures of exited
 * processes. */
__u64 captures_open = 0;
__u64 swept_ns = 0; /* time of the last cleanup of ended captures */

#define SWEEP_PAUSE_NS 1000000000ULL

/* Returns the stream argument. For _ptsz calls, replaces stream 0 by STREAM_PER_THREAD. */
INLINE u64 stream_argument(const volatile struct probe_row* row, u64 stream)
{
    return stream | (is_zero(stream) & row->per_thread_stream) * STREAM_PER_THREAD;
}

INLINE struct stream_key stream_key(const struct image* image, u64 stream)
{
    struct stream_key key = {.image = *image, .stream = stream};
    if (stream == STREAM_PER_THREAD) {
        struct task_struct* task = bpf_get_current_task_btf();
        key.thread = (u64)task->pid << 32 | (u32)task->start_boottime;
    }
    return key;
}

INLINE struct capture* capture_numbered(const struct image* image, u64 number)
{
    struct handle_number key = {.image = *image, .number = number};
    return number ? bpf_map_lookup_elem(&captures, &key) : 0;
}

INLINE u64 capture_number(const struct image* image, u64 stream)
{
    if (!captures_open)
        return 0;
    struct stream_key key = stream_key(image, stream);
    u64* number = bpf_map_lookup_elem(&capturing_streams, &key);
    return number ? *number : 0;
}

INLINE struct capture* capture_of(const struct image* image, u64 stream)
{
    return capture_numbered(image, capture_number(image, stream));
}

INLINE bool under_capture(const struct image* image, u64 stream)
{
    return capture_of(image, stream) != 0;
}

/* Deletes a capture. Returns false if the capture has already ended. */
INLINE bool forget_capture(const struct image* image, u64 number)
{
    struct handle_number key = {.image = *image, .number = number};
    if (DELETE_SHARED(&captures, SHARED_CAPTURES, &key))
        return false;
    __sync_fetch_and_add(&captures_open, -1);
    return true;
}

static long sweep_number(void* map, const struct image* key, const u64* number, u32* table)
{
    if (!capture_numbered(key, *number) && !bpf_map_delete_elem(map, key))
        give_share(word_of_image(key), *table);
    return 0;
}

/* Sets the capture of a stream or an event. Entries of ended captures are deleted only when the map is full. */
#define PUT_CAPTURE_NUMBER(map, table, key, number)                                                                    \
    ({                                                                                                                 \
        long error = PUT_SHARED(map, table, key, number);                                                              \
        u64 now = error ? bpf_ktime_get_ns() : 0;                                                                      \
        if (error && now - swept_ns > SWEEP_PAUSE_NS) {                                                                \
            swept_ns = now;                                                                                            \
            u32 swept = table;                                                                                         \
            bpf_for_each_map_elem(map, sweep_number, &swept, 0);                                                       \
            error = PUT_SHARED(map, table, key, number);                                                               \
        }                                                                                                              \
        if (error)                                                                                                     \
            lose(LOSS_STATE, 1);                                                                                       \
    })

/* Begins a capture. Callers must first send the process to the front end (introduce()), even if none of the process's
 * calls is counted. The front end then deletes the process's captures when the process exits. */
INLINE void capture_begin(const struct image* image, u64 stream, u64 graph)
{
    struct stream_key key = stream_key(image, stream);
    u64* before = bpf_map_lookup_elem(&capturing_streams, &key);
    if (before)
        forget_capture(image, *before); /* forgets an older capture, whose end was not seen */
    u64 number = __sync_fetch_and_add(&captures_begun, 1) + 1;
    struct handle_number capture_key = {.image = *image, .number = number};
    struct capture new = {.begun_ns = bpf_ktime_get_ns(), .graph = graph, .stream = stream};
    __sync_fetch_and_add(&captures_open, 1);
    if (PUT_SHARED(&captures, SHARED_CAPTURES, &capture_key, &new)) {
        __sync_fetch_and_add(&captures_open, -1);
        lose(LOSS_STATE, 1);
        return;
    }
    PUT_CAPTURE_NUMBER(&capturing_streams, SHARED_CAPTURING_STREAMS, &key, &number);
}

/* True if the capture continues, because an attempt to end it failed. A capture must be ended on the stream on which it
 * began (else CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) and, unless it is relaxed, by the thread that began it (else
 * CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD). */
INLINE bool is_still_capturing(s32 result)
{
    return result == 903 || result == 908;
}

/* Ends the capture that a stream is in, for all streams of the capture. Copies the capture to *ended. Returns false if
 * the stream is not under capture. */
INLINE bool capture_end(const struct image* image, u64 stream, struct capture* ended)
{
    u64 number = capture_number(image, stream);
    struct capture* capture = capture_numbered(image, number);
    if (!capture)
        return false;
    *ended = *capture;
    struct stream_key key = stream_key(image, stream);
    DELETE_SHARED(&capturing_streams, SHARED_CAPTURING_STREAMS, &key);
    forget_capture(image, number);
    return true;
}

/* Called before a stream is destroyed, because its handle may be reused before the call returns. Returns the id of the
 * stream's capture, or 0 if the stream is not under capture. */
INLINE u64 stream_destroy_begins(const struct image* image, u64 stream)
{
    struct stream_key key = stream_key(image, stream);
    u64 number = capture_number(image, stream);
    if (number)
        DELETE_SHARED(&capturing_streams, SHARED_CAPTURING_STREAMS, &key);
    return number;
}

/* Called after the call that destroys a stream. A capture whose first stream was destroyed cannot be ended by a call,
 * so such a capture is deleted here. */
INLINE void stream_destroy_ends(const struct image* image, u64 stream, u64 number, bool destroyed)
{
    struct stream_key key = stream_key(image, stream);
    struct capture* capture = capture_numbered(image, number);
    if (capture && !destroyed)
        PUT_CAPTURE_NUMBER(&capturing_streams, SHARED_CAPTURING_STREAMS, &key, &number);
    else if (capture && capture->stream == stream)
        forget_capture(image, number);
}

/* Called after a stream was created. An older stream with the same handle may have been destroyed together with its
 * context. That destruction was not seen, so the older stream's entry is removed here. */
INLINE void stream_created(const struct image* image, u64 stream)
{
    u64 number = captures_open ? stream_destroy_begins(image, stream) : 0;
    if (number)
        stream_destroy_ends(image, stream, number, true);
}

INLINE void event_recorded(const struct image* image, u64 event, u64 stream)
{
    u64 number = capture_number(image, stream);
    struct handle_number key = {.image = *image, .number = event};
    if (capture_numbered(image, number))
        PUT_CAPTURE_NUMBER(&captured_events, SHARED_CAPTURED_EVENTS, &key, &number);
    else if (captures_open)
        DELETE_SHARED(&captured_events, SHARED_CAPTURED_EVENTS, &key);
}

INLINE void event_waited_for(const struct image* image, u64 event, u64 stream)
{
    struct handle_number key = {.image = *image, .number = event};
    u64* number = captures_open ? bpf_map_lookup_elem(&captured_events, &key) : 0;
    if (!number || !capture_numbered(image, *number))
        return;
    u64 joined = *number;
    struct stream_key stream_of = stream_key(image, stream);
    PUT_CAPTURE_NUMBER(&capturing_streams, SHARED_CAPTURING_STREAMS, &stream_of, &joined);
}

INLINE void event_destroyed(const struct image* image, u64 event)
{
    struct handle_number key = {.image = *image, .number = event};
    if (captures_open)
        DELETE_SHARED(&captured_events, SHARED_CAPTURED_EVENTS, &key);
}

/* Without FORGET(), clang 22 and later compare only the lower half of `node`, but use the whole word as an index. */
INLINE void add_node(struct capture* capture, u64 node, u32 n)
{
    FORGET(node);
    if (node < GRAPH_NODES)
        __sync_fetch_and_add(&capture->nodes.count[node], n);
}

/* Handles event calls, through which streams join captures. */

INLINE int event_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = captures_open ? traced_row_of_process(ctx, task) : 0;
    if (!number)
        return 1;
    const volatile struct probe_row* row = probe_row(number);
    struct image image = image_of(task);
    u64 stream = stream_argument(row, register_argument(ctx, row, ARG_STREAM));
    u64 event = register_argument(ctx, row, ARG_HANDLE);
    if (row->kind == KIND_EVENT_DESTROY)
        event_destroyed(&image, event);
    else if (row->kind == KIND_EVENT_RECORD)
        event_recorded(&image, event, stream);
    else
        event_waited_for(&image, event, stream);
    return 1;
}

#endif
