/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Waits in progress, at one place per thread, and the end of waits that a thread left without returning (longjmp,
 * exception). */
#ifndef GPUSNOOP_LEFT_WAIT_BPF_H
#define GPUSNOOP_LEFT_WAIT_BPF_H

#include "base/machine.bpf.h"
#include "base/places.bpf.h"
#include "shared/wait.h"

const volatile bool waits_alone = true; /* false: other programs count copies and frees */

/* One place per thread that has waited, kept until the thread exits. A thread is in one wait at a time, except for a
 * driver call inside a runtime call, of which one counts. */
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

/* Ends the wait of a thread that calls at `sp`: it has left that wait (longjmp, exception), unless it calls from within
 * the wait, further down the stack and with the wait's return probe still pending. A wait younger than least_age is not
 * checked: it may be part of this very call, recorded by another program. */
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
