/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Host time spent in calls that wait for the device. Calls that have returned are counted in rows. Calls in progress
 * are stored in a separate table, so that a thread that is stuck in a wait is reported, too. */
#ifndef GPUSNOOP_WAIT_BPF_H
#define GPUSNOOP_WAIT_BPF_H

#include "base/api_call.bpf.h"
#include "base/left_wait.bpf.h"
#include "kinds/context.bpf.h"
#include "shared/wait.h"

#define NOT_READY 600 /* CUDA_ERROR_NOT_READY, cudaErrorNotReady */

const volatile bool show_waiting = false;
const volatile bool stacks_of_waits = false; /* sample stacks even if per_stack is not set (sample_stack()) */

/* Time of the last report, in ns. If a call began before the last report, some of its time has already been reported.
 * When such a call returns, it is stored in waiting.spanning. The front end then reads the call's time from there, not
 * from the call's row (CALL_IN_PARTS). The lowest bit of reported_ns alternates between reports and selects the element
 * of waiting.spanning, because the front end may still be reading calls that were stored for the previous report. */
__u64 reported_ns = 0;

INLINE void begin_waiting(struct pt_regs* ctx, struct task_struct* task, struct thread_state* thread,
                          const struct call_key* key, u64 now)
{
    if (!thread->place)
        thread->place = new_place() + 1;
    struct waiting* place = place_of(thread);
    if (!place) {
        thread->place = 0;
        lose(LOSS_WAITING, 1);
        return;
    }
    if (place->now.since_ns)
        end_left_wait(PT_REGS_SP(ctx), 0);
    struct image* before = &place->now.key.image;
    if (before->pid != key->image.pid || before->serial != key->image.serial)
        introduce(&key->image, per_cgroup ? key->cgroups : cgroups_of(untrusted(task)));
    thread->waits_at = PT_REGS_SP(ctx);
    place->thread_start_ns = task->start_boottime;
    place->now.key = *key;
    store_ordered(&place->now.since_ns, now);
}

/* Ends a thread's wait. Returns true if a report was made during the call, so part of its time may already have been
 * reported. The front end then reads the rest from waiting.spanning, not from the call's row (CALL_IN_PARTS). */
INLINE bool end_waiting(struct thread_state* thread, const struct ended_call* ended)
{
    struct waiting* place = place_of(thread);
    if (!place || place->now.since_ns != ended->entry_ns)
        return false;
    u64 reported = reported_ns;
    bool in_parts = ended->entry_ns < reported && ended->duration_ns >= least_ns;
    if (in_parts) {
        struct wait_call* spanning = &place->spanning[reported & 1];
        store_ordered(&spanning->since_ns, 0);
        spanning->key = place->now.key;
        spanning->key.stack = ended->kept->call.key.stack;
        spanning->key.caller = ended->kept->call.key.caller;
        spanning->ended_ns = ended->entry_ns + ended->duration_ns;
        store_ordered(&spanning->since_ns, ended->entry_ns);
    }
    store_ordered(&place->now.since_ns, 0);
    return in_parts;
}

/* Samples the stack of a thread's first wait, and then one per STACK_EVERY_NS of waiting, because reading a stack costs
 * more than all other work on a wait. So every wait of at least STACK_EVERY_NS gets a stack. For a shorter wait, the
 * probability of a stack grows with the duration. The stack is read when the call returns, because the duration is then
 * known. At that moment, the frame pointers lead to the same callers as at entry. Only the immediate caller's address
 * has moved: at entry it is the return address on the stack, and now it is the instruction pointer. */
INLINE void sample_stack(struct pt_regs* ctx, struct thread_state* thread, const struct ended_call* ended)
{
    u64 waited = thread->waited_ns + ended->duration_ns;
    bool due = !thread->waited_ns || waited >= STACK_EVERY_NS;
    thread->waited_ns = due ? 1 : waited;
    if (!due)
        return;
    read_stack(ctx, &ended->kept->call.key, COPIED_AT_RETURN);
}

INLINE u32 wait_of(const volatile struct probe_row* row)
{
    return row->kind == KIND_COPY ? WAIT_COPY : row->wait;
}

INLINE int wait_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct kept_call kept = {};
    const volatile struct probe_row* row = begin_sampled_call(ctx, task, SAMPLED_POLLS, 0, &kept);
    if (!row)
        return 1;
    struct call_key* key = &kept.call.key;
    key->kind = KIND_WAIT;
    key->wait.wait = wait_of(row);
    if (per_stream) {
        struct arguments arguments;
        begin_arguments(ctx, row, &arguments);
        key->stream = stream_argument(row, read_argument(&arguments, row, ARG_STREAM));
    }
    if (emit_events && has_argument(row, ARG_HANDLE))
        key->subject = register_argument(ctx, row, ARG_HANDLE);
    u64 now = bpf_ktime_get_ns();
    struct thread_state* thread = thread_state_create(task);
    struct open_call* call = keep_call_in(ctx, thread, PART_WAIT, &kept, now);
    if (!call)
        return 1;
    bool shown = show_waiting && key->wait.wait != WAIT_POLL;
    if (shown || is_counted_elsewhere(key->wait.wait))
        call->sp_part &= ~COUNT_IF_LEFT;
    if (shown)
        begin_waiting(ctx, task, thread, key, now);
    return 0;
}

VERIFIED_ONCE int record_wait_in_table(struct call* wait, u64 entry_ns, u64 duration_ns)
{
    count_argument(wait, 1, entry_ns, duration_ns);
    return 0;
}

INLINE int wait_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct ended_call ended;
    struct thread_state* thread = end_call_as(ctx, task, PART_WAIT, &ended);
    if (!thread)
        return 0;
    struct call_key* key = &ended.kept->call.key;
    if (stacks_of_waits && !per_stack && key->wait.wait != WAIT_POLL)
        sample_stack(ctx, thread, &ended);
    if (show_waiting && key->wait.wait != WAIT_POLL && end_waiting(thread, &ended))
        key->flags |= CALL_IN_PARTS;
    if (ended.duration_ns < least_ns)
        return 0;
    /* This result means that the work is not done yet, not that the poll has failed. */
    if (key->wait.wait == WAIT_POLL && key->result == NOT_READY) {
        if (only_failed)
            return 0;
        key->result = 0;
        key->flags |= CALL_NOT_READY;
    }
    if (!count_often(&ended.kept->call, 1, ended.entry_ns, ended.duration_ns))
        record_wait_in_table(&ended.kept->call, ended.entry_ns, ended.duration_ns);
    return 0;
}

CALL_PROGRAMS(wait, wait_entry_body, wait_return_body)

#endif
