/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The outermost call of each thread, for programs that do not count nested calls. The call's slot in the table is
 * computed from the thread id (12 ns, against 45 ns for task storage). A thread owns its slot from the call's entry to
 * the call's return. */
#ifndef GPUSNOOP_FRONT_CALLS_BPF_H
#define GPUSNOOP_FRONT_CALLS_BPF_H

#include "base/machine.bpf.h"
#include "base/process.bpf.h"
#include "shared/wait.h"

#define FRONT_TRIES 8 /* number of slots that a thread tries, beginning with the slot that its id selects */

MMAPABLE_ARRAY_MAP(front_calls, FRONT_CALLS, struct front_call);

/* Identifies a thread. Includes its start time, because thread ids are reused. */
INLINE u64 front_owner(struct task_struct* task)
{
    return (u64)task->pid << 32 | (u32)task->start_boottime;
}

INLINE u32 place_of_call(u64 owner, u32 number)
{
    return ((owner >> 32) + number) & (FRONT_CALLS - 1);
}

INLINE struct front_call* front_call_at(u32 place)
{
    return bpf_map_lookup_elem(&front_calls, &place);
}

INLINE bool claim_front_call(struct front_call* front, u64 owner)
{
    return !__sync_val_compare_and_swap(&front->owner, 0, owner);
}

/* Slow path, taken if another thread has occupied this thread's first slot. Returns the index of the slot that this
 * thread owns. If the thread owns none and `begins` is set, claims a free slot. Returns FRONT_CALLS if the thread has
 * no slot. */
OWN_FRAME u32 find_or_claim_place(u64 owner, u32 begins)
{
    for (u32 i = 0; i < FRONT_TRIES; i++) {
        struct front_call* front = front_call_at(place_of_call(owner, i));
        if (front && front->owner == owner)
            return place_of_call(owner, i);
    }
    for (u32 i = 0; begins && i < FRONT_TRIES; i++) {
        struct front_call* front = front_call_at(place_of_call(owner, i));
        if (front && claim_front_call(front, owner)) {
            front->stack = 0;
            return place_of_call(owner, i);
        }
    }
    return FRONT_CALLS;
}

/* Begins a call and returns its slot. Returns NULL if the call is inside another call of the thread, or if no slot is
 * free. If the thread's recorded call has the same stack pointer or a lower one, the thread has left that call without
 * returning, which counts as a loss. */
INLINE struct front_call* begin_front_call(struct pt_regs* ctx, struct task_struct* task)
{
    u64 owner = front_owner(task);
    struct front_call* front = front_call_at(place_of_call(owner, 0));
    if (!front)
        return 0;
    bool taken = !front->shared && claim_front_call(front, owner);
    if (taken) {
        front->stack = 0;
    } else if (front->owner != owner) {
        front->shared = 1;
        front = front_call_at(find_or_claim_place(owner, true));
        if (!front) {
            lose(LOSS_START, 1);
            return 0;
        }
    }
    if (front->stack > PT_REGS_SP(ctx))
        return 0;
    if (front->stack)
        lose(LOSS_LEFT, 1);
    front->stack = PT_REGS_SP(ctx);
    front->image = image_of(task);
    return front;
}

/* Returns the slot of the call that is returning. The caller of this function must then call end_front_call(). Returns
 * NULL if the call is nested, or if its entry was not seen. Sets *lost to true only if the entry was not seen. */
INLINE struct front_call* returning_front_call(struct pt_regs* ctx, struct task_struct* task, bool* lost)
{
    u64 owner = front_owner(task), stack = SP_AT_ENTRY(ctx);
    struct front_call* front = front_call_at(place_of_call(owner, 0));
    if (front && front->owner != owner)
        front = front->shared ? front_call_at(find_or_claim_place(owner, false)) : 0;
    *lost = !front || front->stack < stack;
    return front && front->stack == stack ? front : 0;
}

INLINE void end_front_call(struct front_call* front)
{
    front->stack = 0;
    front->image.pid = 0;
    store_ordered(&front->owner, 0);
}

#endif
