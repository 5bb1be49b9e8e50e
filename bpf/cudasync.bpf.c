/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Host time that goes by in calls which wait for the device. What returns is counted by row; what has not returned yet
 * is in a table of its own, or a thread that waits for ever would not be seen at all. */
#include "call.bpf.h"
#include "state.bpf.h"
#include "wait.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u64 least_ns = 0; /* shorter calls are left out */

#define NOT_READY 600 /* CUDA_ERROR_NOT_READY, cudaErrorNotReady */

const volatile bool show_waiting = false;

/* When the last report was made. A call that began before has a part of its time there: the front end reads the whole
 * of it from its entry here, which stays behind for that, and not from the table. */
__u64 reported_ns = 0;

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct waiting_key);
    __type(value, struct waiting);
} waiting SEC(".maps");

INLINE struct waiting_key waiting_key(struct task_struct* task, u64 since_ns)
{
    return (struct waiting_key){.image = image_of(task), .since_ns = since_ns, .tid = task->pid};
}

INLINE void begin_waiting(struct task_struct* task, const struct call_key* key, u64 now)
{
    struct waiting_key begun = waiting_key(task, now);
    struct waiting entry = {.thread_start_ns = task->start_boottime, .key = *key};
    introduce(&key->image, per_cgroup ? key->cgroups : cgroups_of(task));
    if (bpf_map_update_elem(&waiting, &begun, &entry, BPF_ANY))
        lose(LOSS_WAITING, 1);
}

INLINE void forget_waiting(struct task_struct* task, u64 since_ns)
{
    struct waiting_key begun = waiting_key(task, since_ns);
    bpf_map_delete_elem(&waiting, &begun);
}

/* Calls that were left without a return (longjmp, exception): see open_call(). */
INLINE void forget_left(struct pt_regs* ctx, struct task_struct* task)
{
    struct thread_state* thread = thread_state(task);
    for (int i = 0; thread && i < OPEN_CALLS; i++) {
        struct open_call* call = &thread->open[i];
        if (call->sp && call->sp <= ctx->sp)
            forget_waiting(task, call->entry_ns);
    }
}

/* A thread that nobody asks for may have been asked for when the call began: its name or cgroup has changed. */
INLINE void leave_call(struct pt_regs* ctx, struct task_struct* task)
{
    struct thread_state* thread = thread_state(task);
    struct open_call* call = thread ? close_call(ctx, thread) : 0;
    if (call && show_waiting)
        forget_waiting(task, call->entry_ns);
}

/* True where the time of the call is told by parts. */
INLINE bool end_waiting(struct task_struct* task, const struct ended_call* ended)
{
    struct waiting_key begun = waiting_key(task, ended->entry_ns);
    struct waiting* entry = ended->entry_ns < reported_ns ? bpf_map_lookup_elem(&waiting, &begun) : 0;
    if (entry)
        entry->ended_ns = ended->entry_ns + ended->duration_ns;
    else
        bpf_map_delete_elem(&waiting, &begun);
    return entry != 0;
}

INLINE u32 wait_of(const volatile struct probe_row* row)
{
    return row->kind == KIND_COPY ? WAIT_COPY : row->wait;
}

INLINE int wait_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!wanted(task))
        return 1;
    u32 number = row_number(ctx);
    if (!number)
        return 1;
    const volatile struct probe_row* row = probe_row(number);
    struct kept_call kept = {.row = number};
    struct call_key* key = &kept.call.key;
    key->image = image_of(task);
    if (row->layer == LAYER_RUNTIME)
        mark_runtime(ctx, task, 0, DRIVER_CALLS_ANY);
    else if (count_runtime && runtime_call_around(ctx, task))
        return 1;
    begin_key(ctx, task, row, number, key);
    key->kind = KIND_WAIT;
    key->wait.wait = wait_of(row);
    key->flags = row->asynchronous ? CALL_ASYNCHRONOUS : 0;
    if (per_stream) {
        u64 stream = 0;
        read_argument(ctx, row, block_address(ctx, row), ARG_STREAM, 0, &stream);
        key->stream = stream_argument(row, stream);
    }
    if (emit_events && has_argument(row, ARG_HANDLE))
        key->subject = register_argument(ctx, row, ARG_HANDLE);
    u64 now = bpf_ktime_get_ns();
    const bool shown = show_waiting && key->wait.wait != WAIT_POLL;
    if (shown)
        forget_left(ctx, task);
    if (!keep_call(ctx, task, &kept, now))
        return 1;
    if (shown)
        begin_waiting(task, key, now);
    return 0;
}

INLINE int wait_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct ended_call ended;
    if (!wanted(task)) {
        leave_call(ctx, task);
        return 0;
    }
    bool counted = end_call(ctx, task, &ended);
    struct call_key* key = &ended.kept.call.key;
    if (!counted)
        return 0;
    const bool shown = show_waiting && key->wait.wait != WAIT_POLL;
    if (ended.duration_ns < least_ns) {
        if (shown)
            forget_waiting(task, ended.entry_ns);
        return 0;
    }
    if (shown && end_waiting(task, &ended))
        key->flags |= CALL_IN_PARTS;
    /* The answer to a question, not a failure. */
    if (key->wait.wait == WAIT_POLL && key->result == NOT_READY) {
        if (only_failed)
            return 0;
        key->result = 0;
        key->flags |= CALL_NOT_READY;
    }
    count_call(task, &ended.kept.call, 1, ended.entry_ns, ended.duration_ns);
    return 0;
}

CALL_PROGRAMS(wait, wait_entry_body, wait_return_body)
