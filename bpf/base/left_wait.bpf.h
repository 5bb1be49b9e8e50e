/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Waits that a thread is in, one place per thread, and the end of those that a thread has left without returning. */
#ifndef GPUSNOOP_LEFT_WAIT_BPF_H
#define GPUSNOOP_LEFT_WAIT_BPF_H

#include "base/machine.bpf.h"
#include "base/places.bpf.h"
#include "shared/wait.h"

const volatile bool waits_alone = true; /* false: copies and frees are counted by programs of their own, too */

/* A place for each thread that has waited, which it keeps: to find it costs next to nothing. No thread waits twice at
 * once, but for a runtime call around a driver call, of which one is counted. */
MMAPABLE_ARRAY_MAP(waiting, PLACES_MAX, struct waiting);

INLINE struct waiting* place_of(struct thread_state* thread)
{
    u32 place = thread->place - 1;
    return bpf_map_lookup_elem(&waiting, &place);
}

INLINE bool is_counted_elsewhere(u32 wait)
{
    return !waits_alone && (wait == WAIT_COPY || wait == WAIT_FREE);
}

/* A thread that calls at `sp` has left the wait that its place shows (longjmp, exception), unless it calls from within
 * it: further down the stack, and the wait's return address is still that of the return probe. A wait younger than this
 * is not looked at: it may be a part of this very call, kept by another program. */
VERIFIED_ONCE int end_left_wait(u64 sp, u64 least_age)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct thread_state* thread = thread_state(task);
    struct waiting* place = thread && thread->place ? place_of(thread) : 0;
    if (!place || !place->now.since_ns || bpf_ktime_get_ns() < place->now.since_ns + least_age)
        return 0;
    if (sp < thread->waits_at && awaits_return(task, thread->waits_at))
        return 0;
    store_ordered(&place->now.since_ns, 0);
    if (!is_counted_elsewhere(place->now.key.wait.wait))
        lose(LOSS_LEFT, 1);
    return 0;
}

#endif
