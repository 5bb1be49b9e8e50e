/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* One record per call, for -e: the dearest thing that a tool does. In the kernel's ring buffer a record of that size
 * takes 105 ns, here 20: no lock, no helper. Lines are in the order in which they got their places, as there; what else
 * is sent goes there, and is read first. */
#ifndef GPUSNOOP_LINES_BPF_H
#define GPUSNOOP_LINES_BPF_H

#include "base/common.bpf.h"
#include "base/order.bpf.h"
#include "shared/line.h"

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1); /* set by the front end */
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32);
    __type(value, struct line);
} lines SEC(".maps");

const volatile __u32 line_places = 1;
const volatile __u64 line_wake = 0; /* bits of their number; see line_is_whole() */

#define LINE_TRIES 16 /* to be the one that takes the next place: each failure is another CPU's success */

/* 0 where there is none that has been read. */
INLINE struct line* take_place(u64* number)
{
    u32 first = 0;
    struct line_ends* ends = bpf_map_lookup_elem(&lines, &first);
    if (!ends)
        return 0;
    for (int i = 0; i < LINE_TRIES; i++) {
        u64 sent = *(volatile u64*)&ends->sent;
        if (sent - *(volatile u64*)&ends->taken >= line_places)
            return 0;
        if (__sync_val_compare_and_swap(&ends->sent, sent, sent + 1) != sent)
            continue;
        *number = sent;
        u32 at = 1 + (u32)(sent % line_places);
        return bpf_map_lookup_elem(&lines, &at);
    }
    return 0;
}

/* The reader waits for the ring buffer, and finds nothing there. */
static __attribute__((noinline)) int wake_reader(void)
{
    void* nothing = bpf_ringbuf_reserve(&ring, sizeof(u64), 0);
    if (nothing)
        bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
    return 0;
}

/* The line can be read; before, the reader stops at its place. The line that makes it an eighth more wakes the reader,
 * as with ring_flags(). */
INLINE void line_is_whole(struct line* line, u64 number)
{
    store_ordered(&line->whole, number + 1);
    u32 first = 0;
    struct line_ends* ends = bpf_map_lookup_elem(&lines, &first);
    if (ends && !((number + 1 - *(volatile u64*)&ends->taken) & line_wake))
        wake_reader();
}

#endif
