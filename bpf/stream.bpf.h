/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Streams under capture: a launch there is recorded into a graph, not executed. */
#ifndef GPUSNOOP_STREAM_BPF_H
#define GPUSNOOP_STREAM_BPF_H

#include "common.bpf.h"
#include "probe.bpf.h"
#include "process.bpf.h"

#define STREAM_PER_THREAD 2 /* CU_STREAM_PER_THREAD */

struct stream_key {
    struct image image;
    u64 stream;
    u64 tid; /* of the thread whose own stream it is, else 0 */
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, struct stream_key);
    __type(value, u64);
} captures SEC(".maps");

__u64 captures_begun = 0; /* while 0, no launch needs to look */

/* The stream argument with the default stream of _ptsz calls made explicit. */
INLINE u64 stream_argument(const volatile struct probe_row* row, u64 stream)
{
    return stream == 0 && row->per_thread_stream ? STREAM_PER_THREAD : stream;
}

INLINE struct stream_key stream_key(const struct image* image, u64 stream)
{
    struct stream_key key = {.image = *image, .stream = stream};
    if (stream == STREAM_PER_THREAD)
        key.tid = (u32)bpf_get_current_pid_tgid();
    return key;
}

INLINE void capture_begin(const struct image* image, u64 stream)
{
    struct stream_key key = stream_key(image, stream);
    u64 one = 1;
    if (bpf_map_update_elem(&captures, &key, &one, BPF_ANY))
        lose(LOSS_STATE, 1);
    __sync_fetch_and_add(&captures_begun, 1);
}

INLINE void capture_end(const struct image* image, u64 stream)
{
    struct stream_key key = stream_key(image, stream);
    bpf_map_delete_elem(&captures, &key);
}

INLINE bool under_capture(const struct image* image, u64 stream)
{
    if (!captures_begun)
        return false;
    struct stream_key key = stream_key(image, stream);
    return bpf_map_lookup_elem(&captures, &key) != 0;
}

#endif
