/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Waits in progress, in one slot per thread, and detection of waits that a thread has left without returning (longjmp,
 * exception). */
#ifndef GPUSNOOP_LEFT_WAIT_BPF_H
#define GPUSNOOP_LEFT_WAIT_BPF_H

#include "base/machine.bpf.h"
#include "base/places.bpf.h"
#include "shared/wait.h"

/* False if other programs of the tool also count copies and frees. These programs then also count the losses of such
 * calls, so the programs for waits must not. */
const volatile bool waits_alone = true;

/* One slot for each thread that has waited, kept until the thread exits. One slot per thread is enough: if a driver
 * call waits inside a runtime call, only one of the two waits is counted. */
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

/* Must be called when a thread makes a call at stack pointer `sp`. If the thread still has a recorded wait, it has
 * usually left the wait without returning (longjmp, exception). This function then ends the wait. But if `sp` is
 * further down the stack and the wait's return probe is still pending, the new call is made from within the wait, and
 * the wait continues. Waits younger than least_age (ns) are not checked, because another program may just have recorded
 * this same call as a wait. */
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
