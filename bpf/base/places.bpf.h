/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Places (indexes) of threads in a tool's table. A thread keeps its place until it exits. The place is stored in
 * thread_state, so finding it needs no additional lookup. */
#ifndef GPUSNOOP_PLACES_BPF_H
#define GPUSNOOP_PLACES_BPF_H

#include "base/thread.bpf.h"
#include "shared/thread_time.h"

/* Places that can be reused. The front end adds the place of a thread that has exited. */
struct {
    __uint(type, BPF_MAP_TYPE_QUEUE);
    __uint(max_entries, PLACES_MAX);
    __uint(value_size, sizeof(u32));
} free_places SEC(".maps");

__u32 places_taken = 0;

/* Allocates a place. Returns PLACES_MAX if the table is full. */
OWN_FRAME u32 new_place(void)
{
    u32 place = 0;
    if (places_taken < PLACES_MAX)
        place = __sync_fetch_and_add(&places_taken, 1);
    else if (bpf_map_pop_elem(&free_places, &place))
        place = PLACES_MAX;
    return place;
}

#endif
