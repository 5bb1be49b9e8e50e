/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Host time that goes by in calls which wait for the device. What returns is counted by row; what has not returned yet
 * is in a table of its own, or a thread that waits for ever would not be seen at all. */
#include "call.bpf.h"
#include "state.bpf.h"
#include "wait.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u64 least_ns = 0; /* shorter calls are left out */

#define NOT_READY 600 /* CUDA_ERROR_NOT_READY, cudaErrorNotReady */

/* A place for each thread that has waited, which it keeps: to find and to leave it costs next to nothing. None waits
 * twice at once, but for a runtime call around a driver call, of which one is counted. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, WAITING_MAX);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32);
    __type(value, struct waiting);
} waiting SEC(".maps");

/* Places of threads that have ended, given back by the front end. */
struct {
    __uint(type, BPF_MAP_TYPE_QUEUE);
    __uint(max_entries, WAITING_MAX);
    __uint(value_size, sizeof(u32));
} free_places SEC(".maps");

__u32 places_taken = 0;

static __attribute__((noinline)) u32 new_place(void)
{
    u32 place = 0;
    if (places_taken < WAITING_MAX)
        place = __sync_fetch_and_add(&places_taken, 1);
    else if (bpf_map_pop_elem(&free_places, &place))
        place = WAITING_MAX;
    return place;
}

INLINE struct waiting* place_of(struct thread_state* thread)
{
    u32 place = thread->wait_place - 1;
    return bpf_map_lookup_elem(&waiting, &place);
}

INLINE void begin_waiting(struct task_struct* task, const struct call_key* key, u64 now)
{
    struct thread_state* thread = thread_state(task);
    if (!thread)
        return;
    if (!thread->wait_place)
        thread->wait_place = new_place() + 1;
    struct waiting* place = place_of(thread);
    if (!place) {
        thread->wait_place = 0;
        lose(LOSS_STATE, 1);
        return;
    }
    if (place->key.image.pid != key->image.pid || place->key.image.serial != key->image.serial)
        introduce(&key->image, per_cgroup ? key->cgroups : cgroups_of(task));
    place->key = *key;
    place->since_ns = now;
}

INLINE void end_waiting(struct task_struct* task)
{
    struct thread_state* thread = thread_state(task);
    struct waiting* place = thread ? place_of(thread) : 0;
    if (place)
        place->since_ns = 0;
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
        struct registers registers;
        u64 stream = 0;
        load_registers(ctx, &registers);
        read_argument(&registers, row, block_address(ctx, row), ARG_STREAM, 0, &stream);
        key->stream = stream_argument(row, stream);
    }
    if (emit_events && has_argument(row, ARG_HANDLE))
        key->subject = register_argument(ctx, row, ARG_HANDLE);
    u64 now = bpf_ktime_get_ns();
    if (!keep_call(ctx, task, &kept, now))
        return 1;
    if (key->wait.wait != WAIT_POLL && !emit_events)
        begin_waiting(task, key, now);
    return 0;
}

INLINE int wait_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct ended_call ended;
    if (!wanted(task))
        return 0;
    bool counted = end_call(ctx, task, &ended);
    struct call_key* key = &ended.kept.call.key;
    if (ended.entry_ns && !emit_events)
        end_waiting(task);
    if (!counted || ended.duration_ns < least_ns)
        return 0;
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
