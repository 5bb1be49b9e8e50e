/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* NCCL calls and communicators. */
#ifndef GPUSNOOP_NCCL_BPF_H
#define GPUSNOOP_NCCL_BPF_H

#include "base/front_calls.bpf.h"
#include "base/machine.bpf.h"
#include "base/probe.bpf.h"
#include "base/process.bpf.h"
#include "base/python.bpf.h"
#include "base/share.bpf.h"
#include "base/window.bpf.h"
#include "kinds/context.bpf.h"
#include "kinds/state.bpf.h"
#include "shared/collective.h"

/* Table of communicators, by process and address. */

struct comm {
    u32 number;
    u32 known; /* nonzero if the identity has been read and sent */
    u32 made;  /* nonzero if the communicator's creation was seen */
    u32 calls; /* number of calls so far */
    s32 error; /* last error that was sent to the front end */
    u32 front; /* 1 + the index of its row in front_comms, which then holds the data instead of this entry; 0: none */
};

HASH_MAP(comms, 16384, struct handle_number, struct comm);

/* Cache of `comms`. A communicator's index in the cache is computed from its key (12 ns, against 62 ns for a lookup in
 * `comms`). A communicator exists only if it has an entry in `comms`: two threads may add the same communicator at
 * once, but only one of them can insert the entry. When a process exits, the front end deletes its entries from `comms`
 * and leaves the cache unchanged. */
#define FRONT_COMMS 1024 /* a power of two */

struct front_comm {
    struct comm comm;         /* first field, because the verifier allows no arithmetic on a pointer that may be NULL */
    struct handle_number key; /* key.number 0: the row is free, or not yet published */
    u64 taken;                /* nonzero if the row is claimed */
};

ARRAY_MAP(front_comms, FRONT_COMMS, struct front_comm);

INLINE u32 front_comm_place(const struct handle_number* key)
{
    return (key->number ^ *(const u64*)&key->image) * 0x9e3779b97f4a7c15ULL >> 54;
}

INLINE bool is_front_comm(const struct front_comm* front, const struct handle_number* key)
{
    return load_acquire(&front->key.number) == key->number && front->key.image.pid == key->image.pid &&
           front->key.image.serial == key->image.serial;
}

INLINE struct comm* comm_in_front(const struct handle_number* key)
{
    u32 at = front_comm_place(key);
    struct front_comm* front = bpf_map_lookup_elem(&front_comms, &at);
    return front && key->number && is_front_comm(front, key) ? &front->comm : 0;
}

/* Finds a communicator through the table `comms`. Its data may be in the table or in the cache. */
INLINE struct comm* comm_in_table(const struct handle_number* key)
{
    struct comm* comm = bpf_map_lookup_elem(&comms, key);
    if (!comm || !comm->front)
        return comm;
    u32 at = comm->front - 1;
    struct front_comm* front = bpf_map_lookup_elem(&front_comms, &at);
    return front ? &front->comm : 0;
}

/* Claims a row of the cache if it is free, or if its communicator is no longer in the table. */
INLINE struct front_comm* claim_front_comm(u32 at)
{
    struct front_comm* front = bpf_map_lookup_elem(&front_comms, &at);
    if (!front || !__sync_val_compare_and_swap(&front->taken, 0, 1))
        return front;
    u64 number = front->key.number;
    if (!number || bpf_map_lookup_elem(&comms, &front->key))
        return 0;
    return __sync_val_compare_and_swap(&front->key.number, number, 0) == number ? front : 0;
}

/* Adds a communicator, unless another thread adds it first. */
INLINE void add_comm(const struct handle_number* key, struct comm* fresh)
{
    u32 at = front_comm_place(key);
    if (!take_share(word_of_image(&key->image), SHARED_COMMS, ENTRIES_OF(&comms)))
        return;
    struct front_comm* front = key->number ? claim_front_comm(at) : 0;
    if (front) {
        front->comm = *fresh;
        fresh->front = at + 1;
    }
    bool added = !bpf_map_update_elem(&comms, key, fresh, BPF_NOEXIST);
    if (!added)
        give_share(word_of_image(&key->image), SHARED_COMMS);
    if (front && added) {
        front->key.image = key->image;
        store_ordered(&front->key.number, key->number);
    } else if (front) {
        store_ordered(&front->taken, 0);
    }
}

INLINE void forget_comm(const struct handle_number* key)
{
    u32 at = front_comm_place(key);
    struct front_comm* front = bpf_map_lookup_elem(&front_comms, &at);
    bool in_front = front && key->number && is_front_comm(front, key);
    if (in_front)
        front->key.number = 0;
    DELETE_SHARED(&comms, SHARED_COMMS, key);
    if (in_front)
        store_ordered(&front->taken, 0);
}

/* NCCL calls. Each rank is a process. For each call of a rank, the programs send the function, the time and the
 * communicator. The front end compares the calls of all ranks to find the late ones. */

/* If true, streams are reported. This is optional, because the stream argument may be on the stack, and reading it
 * takes a fifth of the tracing overhead of a call. */
const volatile bool per_stream = false;

const volatile bool stacks_of_calls = false;

#define CALLER_FRAMES 64

/* If stacks are not requested, the front end reduces this map to 1 entry. */
STACK_TRACE_MAP(call_stacks, 16384, CALLER_FRAMES);

#define COMMS_AT_ONCE 16 /* maximum number of communicators that one call creates, one per device */

__u32 comms_seen = 0; /* number of communicators so far, and the last id assigned */

/* Checks an identity, because it was read from the traced process's memory, which may contain anything. */
INLINE bool is_plausible(const struct comm_identity* identity)
{
    return identity->hash && identity->rank >= 0 && identity->rank < identity->ranks && identity->device >= 0 &&
           identity->device < COMM_DEVICES_MAX;
}

/* Returns the word in the probe's cookie that describes the probed NCCL library: the offset of the rank in struct
 * ncclComm, divided by 8, and COMM_HAS_MAGIC. */
INLINE u64 word_of_file(struct pt_regs* ctx)
{
    return bpf_get_attach_cookie(ctx) >> COOKIE_WORD_SHIFT;
}

/* Reads a communicator's identity. Returns false if the identity's offset is unknown for this file, or if the
 * communicator's memory holds no valid identity. */
INLINE bool read_identity(u64 word, u64 handle, struct comm_identity* identity)
{
    u64 offset = (word & ~(u64)COMM_HAS_MAGIC) * 8;
    if (!offset || (word & COMM_HAS_MAGIC && read_word(handle) != COMM_MAGIC))
        return false;
    u64 address = handle + offset - offsetof(struct comm_identity, rank);
    return !bpf_probe_read_user(identity, sizeof(*identity), (void*)address) && is_plausible(identity);
}

INLINE void send_identity(u64 word, const struct handle_number* key, struct comm* comm, bool is_new)
{
    struct comm_identity identity = {};
    comm->known = read_identity(word, key->number, &identity);
    if (!comm->known && !is_new)
        return;
    struct comm_record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        comm->known = 0; /* retry next time */
        lose(LOSS_STATE, 1);
        return;
    }
    record->type = RECORD_COMM;
    record->number = comm->number;
    record->image = key->image;
    record->made = comm->made;
    record->identity = identity;
    if (!comm->known)
        record->identity.ranks = 0;
    bpf_ringbuf_submit(record, ring_flags(sizeof(*record)));
}

/* Returns a communicator, and adds it if it is new. NCCL completes a new communicator only when its group ends, so the
 * identity is read at each call until it is valid. */
OWN_FRAME struct comm* find_comm(u64 word, const struct handle_number* key, u32 made)
{
    struct comm* comm = comm_in_table(key);
    bool is_new = !comm;
    if (is_new) {
        struct comm fresh = {.number = __sync_fetch_and_add(&comms_seen, 1) + 1, .made = made};
        introduce(&key->image, cgroups_of(untrusted(bpf_get_current_task_btf())));
        add_comm(key, &fresh);
        comm = comm_in_table(key);
    }
    if (!comm) {
        lose(LOSS_STATE, 1);
        return 0;
    }
    if (!comm->known)
        send_identity(word, key, comm, is_new);
    return comm;
}

enum collective_word {
    KEPT_ROW,
    KEPT_COMM,
    KEPT_OUT,
    KEPT_HANDLE,
    KEPT_SEQUENCE,
    KEPT_ELEMENTS,
    KEPT_TYPE,
    KEPT_ROOT,
    KEPT_REDUCTION,
    KEPT_CAPTURED,
    KEPT_STREAM,
};

INLINE int coll_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = traced_row(ctx, task);
    if (!number)
        return 1;
    struct front_call* call = begin_front_call(ctx, task);
    if (!call)
        return 1; /* NCCL itself made this call, inside another NCCL function */
    const volatile struct probe_row* row = probe_row(number);
    struct arguments arguments;
    begin_arguments(ctx, row, &arguments);
    call->word[KEPT_ROW] = number;
    call->word[KEPT_SEQUENCE] = read_argument(&arguments, row, ARG_COUNT);
    call->word[KEPT_COMM] = 0;
    call->word[KEPT_OUT] = read_argument(&arguments, row, ARG_OUT);
    call->word[KEPT_ELEMENTS] = read_argument(&arguments, row, ARG_BYTES);
    call->word[KEPT_TYPE] = read_argument(&arguments, row, ARG_FORMAT);
    call->word[KEPT_ROOT] = read_argument(&arguments, row, ARG_ROOT);
    call->word[KEPT_REDUCTION] = read_argument(&arguments, row, ARG_REDUCTION);
    call->word[KEPT_CAPTURED] = 0;
    struct handle_number key = {.image = image_of(task), .number = read_argument(&arguments, row, ARG_HANDLE)};
    call->word[KEPT_HANDLE] = key.number;
    u64 stream = per_stream || captures_open ? read_argument(&arguments, row, ARG_STREAM) : 0;
    call->word[KEPT_STREAM] = stream;
    if (arguments.error)
        lose(LOSS_ARGUMENTS, 1);
    if (has_argument(row, ARG_HANDLE)) {
        struct comm* comm = comm_in_front(&key);
        if (!comm || !comm->known)
            comm = find_comm(word_of_file(ctx), &key, 0);
        call->word[KEPT_COMM] = comm ? comm->number : 0;
        if (row->kind != KIND_COMM_QUERY)
            call->word[KEPT_SEQUENCE] = comm ? __sync_fetch_and_add(&comm->calls, 1) + 1 : 0;
        call->word[KEPT_CAPTURED] = under_capture(&key.image, stream);
    }
    if (row->kind == KIND_COMM_DESTROY)
        forget_comm(&key); /* the address may be reused before the call returns */
    call->entry_ns = bpf_ktime_get_ns();
    return 0;
}

VERIFIED_ONCE int track_comm(u64 word, u64 handle)
{
    struct handle_number key = {.image = image_of(bpf_get_current_task_btf()), .number = handle};
    if (!handle)
        return 0;
    forget_comm(&key); /* forgets an older communicator at this address, whose end was not seen */
    find_comm(word, &key, 1);
    return 0;
}

/* Tracks new communicators. find_comm() reads their identities when they are complete. */
INLINE void track_comms(struct pt_regs* ctx, const struct front_call* call)
{
    u64 count = call->word[KEPT_SEQUENCE] ?: 1;
    for (u32 i = 0; i < COMMS_AT_ONCE && i < count; i++)
        track_comm(word_of_file(ctx), read_word(call->word[KEPT_OUT] + i * 8));
}

/* Called when the call returns. At entry, a walk along frame pointers would skip the caller, because the called
 * function has no frame yet. */
INLINE s32 stack_of_caller(struct pt_regs* ctx)
{
    s32 stack =
        follow_python ? read_python_stack(PT_REGS_SP(ctx), PT_REGS_IP(ctx), STACK_NOT_READ, COPIED_AT_RETURN) : -1;
    if (stack < 0)
        stack = window_stack_of(ctx, COPIED_AT_RETURN);
    if (stack >= 0)
        return stack;
    guard_begin();
    stack = bpf_get_stackid(ctx, &call_stacks, BPF_F_USER_STACK);
    guard_end();
    if (stack < 0)
        lose(LOSS_STACK, 1);
    return stack;
}

INLINE void send_collective(struct pt_regs* ctx, struct task_struct* task, const struct front_call* call, s32 result,
                            bool asynchronous)
{
    s32 stack = stacks_of_calls ? stack_of_caller(ctx) : -1;
    struct collective_call* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        lose(LOSS_EVENT, 1);
        return;
    }
    record->type = RECORD_COLLECTIVE;
    record->row = call->word[KEPT_ROW];
    record->pid = task->tgid;
    record->tid = task->pid;
    record->comm = call->word[KEPT_COMM];
    record->sequence = call->word[KEPT_SEQUENCE];
    record->result = result;
    record->data_type = call->word[KEPT_TYPE] < 0xff ? call->word[KEPT_TYPE] : 0xff;
    record->reduction =
        call->word[KEPT_REDUCTION] < COLLECTIVE_OWN_REDUCTION ? call->word[KEPT_REDUCTION] : COLLECTIVE_OWN_REDUCTION;
    record->captured = call->word[KEPT_CAPTURED];
    record->asynchronous = asynchronous;
    record->entry_ns = call->entry_ns;
    record->duration_ns = bpf_ktime_get_ns() - call->entry_ns;
    record->elements = call->word[KEPT_ELEMENTS];
    record->stream = call->word[KEPT_STREAM];
    record->root = call->word[KEPT_ROOT];
    record->stack = stack;
    read_comm(task, (u64*)record->thread_name);
    bpf_ringbuf_submit(record, ring_flags(sizeof(*record)));
}

/* Sends an error only once, because programs query the error of a communicator again and again. */
INLINE void send_error(struct pt_regs* ctx, struct task_struct* task, const struct front_call* call)
{
    struct handle_number key = {.image = image_of(task), .number = call->word[KEPT_HANDLE]};
    s32 error = 0;
    bpf_probe_read_user(&error, sizeof(error), (void*)call->word[KEPT_OUT]);
    struct comm* comm = collective_failed(error) ? comm_in_table(&key) : 0;
    if (comm && __sync_lock_test_and_set(&comm->error, error) != error)
        send_collective(ctx, task, call, error, true);
}

/* Assigns a failed call that has no communicator to a placeholder communicator of the process. */
INLINE void use_unknown_comm(struct pt_regs* ctx, struct task_struct* task, struct front_call* call)
{
    struct handle_number key = {.image = image_of(task)};
    struct comm* comm = find_comm(word_of_file(ctx), &key, 0);
    call->word[KEPT_COMM] = comm ? comm->number : 0;
    call->word[KEPT_SEQUENCE] = 0;
}

INLINE void finish_collective(struct pt_regs* ctx, struct task_struct* task, struct front_call* call)
{
    s32 result = PT_REGS_RC(ctx);
    u32 kind = probe_row(call->word[KEPT_ROW])->kind;
    bool failed = collective_failed(result);
    if (kind == KIND_COMM_NEW && !failed) {
        track_comms(ctx, call);
    } else if (kind == KIND_COMM_QUERY && !failed) {
        if (call->word[KEPT_OUT])
            send_error(ctx, task, call);
    } else {
        if (failed && !call->word[KEPT_COMM])
            use_unknown_comm(ctx, task, call);
        send_collective(ctx, task, call, result, false);
    }
}

INLINE int coll_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    bool lost = false;
    struct front_call* call = returning_front_call(ctx, task, &lost);
    if (call) {
        finish_collective(ctx, task, call);
        end_front_call(call);
    } else if (lost) {
        lose_unmatched_return(task, false);
    }
    return 0;
}

CALL_PROGRAMS(coll, coll_entry_body, coll_return_body)

/* Calls that wait for the device. These programs are attached and detached while threads wait, so calls whose return is
 * not seen are not counted as losses. */
INLINE int waited_entry_body(struct pt_regs* ctx)
{
    struct followed at;
    if (!follow_call(ctx, PART_STATE, &at))
        return 1;
    at.call->entry_ns = bpf_ktime_get_ns();
    return 0;
}

INLINE int waited_return_body(struct pt_regs* ctx)
{
    struct followed at;
    if (!followed_returns(ctx, PART_STATE, &at) || (s32)PT_REGS_RC(ctx) != 0)
        return 0;
    struct waited_record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record)
        return 0; /* not counted as a loss, because more waits will follow */
    record->type = RECORD_WAITED;
    record->pid = at.task->tgid;
    record->tid = at.task->pid;
    record->zero = 0;
    record->begin_ns = at.call->entry_ns;
    record->end_ns = bpf_ktime_get_ns();
    bpf_ringbuf_submit(record, ring_flags(sizeof(*record)));
    return 0;
}

/* Attached only while the front end aligns the call sequences of ranks, for which it needs the times of waits. */
CALL_PROGRAMS(waited, waited_entry_body, waited_return_body)

ENTRY_PROGRAM(event_entry, event_body)

#endif
