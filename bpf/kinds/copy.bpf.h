/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Copies, sets and prefetches. BPF programs count them in rows of a table, and send one record per copy only for -e. */
#ifndef GPUSNOOP_COPY_BPF_H
#define GPUSNOOP_COPY_BPF_H

#include "base/api_call.bpf.h"
#include "kinds/address.bpf.h"
#include "kinds/context.bpf.h"

/* If true, pinned and pageable memory are distinguished, even if the call's arguments specify only host memory. */
const volatile bool per_memory = false;
const volatile bool measure_rate = false; /* if true, the histogram has rates instead of durations */

/* Returns the bucket of the rate in megabytes per second (bytes per microsecond). Calls that return before the copy is
 * done have no rate. Memory sets have no rate either, because every function that sets memory may return early, even if
 * its name does not contain Async. */
OWN_FRAME u32 rate_bucket(const struct call* call, u64 duration_ns)
{
    if (!call)
        return BUCKET_NONE;
    const struct copy* copy = &call->copy;
    const struct call_key* key = &call->key;
    bool timed = copy->sized && duration_ns && !key->result && key->copy.direction != DIRECTION_SET &&
                 !(key->flags & (CALL_ASYNCHRONOUS | CALL_RECORDED));
    return opaque(timed ? histogram_bucket(copy->bytes * 1000 / duration_ns) : BUCKET_NONE);
}

INLINE void add_copy_to(struct call_stats* stats, const struct copy* copy)
{
    u64 sums[CALL_FIGURES] = {};
    sums_of_copy(copy, sums);
    add_kind_sums(stats, sums);
}

VERIFIED_ONCE int record_copy_in_table(struct call* call, u64 entry_ns, u64 duration_ns)
{
    struct call_stats* stats = count_argument(call, call ? call->copy.copies : 0, entry_ns, duration_ns);
    if (stats)
        add_copy_to(stats, &call->copy);
    return 0;
}

INLINE void record_copy(struct call* call, u64 entry_ns, u64 duration_ns)
{
    struct copy* copy = &call->copy;
    struct call_key* key = &call->key;
    if (per_size)
        key->copy.size = opaque(copy->sized ? histogram_bucket(copy->bytes) : BUCKET_NONE);
    if (measure_rate)
        key->duration = rate_bucket(call, opaque(duration_ns));
    struct call_stats* stats = count_often(call, copy->copies, entry_ns, duration_ns);
    if (stats)
        add_copy_to(stats, copy);
    else
        record_copy_in_table(call, entry_ns, duration_ns);
}

/* The following tables are used instead of branches, for the reason given in base/verifier.bpf.h. */
struct ends {
    u8 source;
    u8 destination;
};

static const volatile struct ends ends_of_direction[DIRECTIONS] = {
    [DIRECTION_H2D] = {MEMORY_HOST, MEMORY_DEVICE},   [DIRECTION_D2H] = {MEMORY_DEVICE, MEMORY_HOST},
    [DIRECTION_D2D] = {MEMORY_DEVICE, MEMORY_DEVICE}, [DIRECTION_H2H] = {MEMORY_HOST, MEMORY_HOST},
    [DIRECTION_P2P] = {MEMORY_DEVICE, MEMORY_DEVICE},
};

/* Direction for each enum cudaMemcpyKind or hipMemcpyKind. For kind 4 (default), the addresses determine the direction.
 * HIP's kind 1024 (from HIP 6.0 on: copy between devices without compute units) is at index 8. */
static const volatile u8 direction_of_kind[16] = {DIRECTION_H2H, DIRECTION_H2D, DIRECTION_D2H,
                                                  DIRECTION_D2D, [8] = DIRECTION_D2D};

INLINE u32 direction_by_number(u32 kind)
{
    return direction_of_kind[(kind | kind >> 7) & 15];
}

/* Kind of memory for each value of the enumerations in enum memory_types. Values for unified and managed memory are
 * missing here: for these, the address determines the kind. */
static const volatile u8 memory_of_type[TYPES] = {
    [TYPES_CUDA + 1] = MEMORY_HOST,     [TYPES_CUDA + 2] = MEMORY_DEVICE, [TYPES_CUDA + 3] = MEMORY_ARRAY,
    [TYPES_OPERAND + 2] = MEMORY_ARRAY, [TYPES_HIP5 + 0] = MEMORY_HOST,   [TYPES_HIP5 + 1] = MEMORY_DEVICE,
    [TYPES_HIP5 + 2] = MEMORY_ARRAY,    [TYPES_HIP6 + 1] = MEMORY_HOST,   [TYPES_HIP6 + 2] = MEMORY_DEVICE,
    [TYPES_HIP6 + 10] = MEMORY_ARRAY,
};

INLINE u32 memory_by_number(const volatile struct probe_row* row, u32 type)
{
    return memory_of_type[(row->types + type) & (TYPES - 1)];
}

enum side { SIDE_UNKNOWN, SIDE_HOST, SIDE_DEVICE, SIDES };

static const volatile u8 side_of_memory[8] = {
    [MEMORY_DEVICE] = SIDE_DEVICE, [MEMORY_ARRAY] = SIDE_DEVICE, [MEMORY_PINNED] = SIDE_HOST,
    [MEMORY_PAGEABLE] = SIDE_HOST, [MEMORY_HOST] = SIDE_HOST,
};

static const volatile u8 direction_between[16] = {
    [SIDE_HOST << 2 | SIDE_HOST] = DIRECTION_H2H,
    [SIDE_HOST << 2 | SIDE_DEVICE] = DIRECTION_H2D,
    [SIDE_DEVICE << 2 | SIDE_HOST] = DIRECTION_D2H,
    [SIDE_DEVICE << 2 | SIDE_DEVICE] = DIRECTION_D2D,
};

_Static_assert(DIRECTIONS <= 8 && MEMORIES <= 8 && SIDES <= 4, "tables are indexed without a check");

INLINE void set_ends(const volatile struct probe_row* row, struct call_key* key, u32 direction, u32 source,
                     u32 destination)
{
    u32 sides = side_of_memory[source & 7] << 2 | side_of_memory[destination & 7];
    key->copy.direction = direction == DIRECTION_UNKNOWN ? direction_between[sides & 15] : direction;
    if (per_memory)
        key->copy.memory = copy_memory(source, destination);
}

/* Numbers (enum argument) of the arguments that describe one end of a copy. */
struct end {
    u32 address;
    u32 host_address;
    u32 type;
    u32 array;
};

/* Returns the kind of memory according to the array argument or the type argument, or `expected` if neither of these
 * two arguments determines the kind. */
INLINE u32 memory_by_type(struct arguments* arguments, const volatile struct probe_row* row, struct end end,
                          u32 expected)
{
    if (read_argument(arguments, row, end.array))
        return MEMORY_ARRAY;
    u32 memory = memory_by_number(row, read_argument(arguments, row, end.type));
    return opaque(memory ?: expected);
}

INLINE u32 memory_of_end(struct arguments* arguments, const volatile struct probe_row* row, const struct image* image,
                         struct end end, u32 expected, u64* address)
{
    if (!has_argument(row, end.address) && !has_argument(row, end.array))
        return MEMORY_DEVICE; /* a device variable, given by its name */
    u32 memory = memory_by_type(arguments, row, end, expected);
    u32 where = end.address;
    if (memory == MEMORY_ARRAY && has_argument(row, end.array))
        where = end.array;
    else if (memory == MEMORY_HOST && has_argument(row, end.host_address))
        where = end.host_address;
    *address = read_argument(arguments, row, where);
    if (memory == MEMORY_ARRAY || (memory && !per_memory))
        return memory;
    return memory_at(image, *address, memory);
}

/* Reads a copy's direction, kinds of memory and addresses. */
INLINE void read_ends(struct arguments* arguments, const volatile struct probe_row* row, struct call* call)
{
    struct call_key* key = &call->key;
    u32 direction = row->direction;
    if (has_argument(row, ARG_DIRECTION))
        direction = direction_by_number(read_argument(arguments, row, ARG_DIRECTION));
    if (direction != DIRECTION_UNKNOWN && !per_memory && !emit_events) {
        key->copy.direction = direction;
        return;
    }
    const struct end from = {ARG_SOURCE, ARG_SOURCE_HOST, ARG_SOURCE_TYPE, ARG_SOURCE_ARRAY};
    const struct end to = {ARG_DESTINATION, ARG_DESTINATION_HOST, ARG_DESTINATION_TYPE, ARG_DESTINATION_ARRAY};
    const volatile struct ends* expected = &ends_of_direction[direction & 7];
    u32 source = MEMORY_UNKNOWN;
    u32 destination =
        opaque(memory_of_end(arguments, row, &key->image, to, expected->destination, &call->copy.destination));
    if (direction != DIRECTION_SET && direction != DIRECTION_PREFETCH)
        source = memory_of_end(arguments, row, &key->image, from, expected->source, &call->copy.source);
    set_ends(row, key, direction, opaque(source), destination);
}

INLINE void read_copy_size(struct arguments* arguments, const volatile struct probe_row* row, struct copy* copy)
{
    u64 bytes = read_argument(arguments, row, ARG_BYTES);
    u64 height = read_argument(arguments, row, ARG_HEIGHT);
    u64 depth = read_argument(arguments, row, ARG_DEPTH);
    /* The size of an array's elements is unknown here, because it is an argument of the call that created the array. */
    bool in_elements = false;
    if (row->array_elements) {
        u64 arrays =
            read_argument(arguments, row, ARG_SOURCE_ARRAY) | read_argument(arguments, row, ARG_DESTINATION_ARRAY);
        u32 from = read_argument(arguments, row, ARG_SOURCE_TYPE),
            to = read_argument(arguments, row, ARG_DESTINATION_TYPE);
        in_elements =
            arrays || memory_by_number(row, from) == MEMORY_ARRAY || memory_by_number(row, to) == MEMORY_ARRAY;
    }
    copy->sized =
        opaque(!arguments->error && !in_elements && multiply_checked(&bytes, height) &&
               multiply_checked(&bytes, depth) && multiply_checked(&bytes, row->element_bytes) && bytes < BYTES_MAX);
    copy->bytes = copy->sized ? bytes : 0;
}

INLINE void read_copy(struct arguments* arguments, const volatile struct probe_row* row, struct call* call)
{
    read_copy_size(arguments, row, &call->copy);
    read_ends(arguments, row, call);
    if (arguments->error)
        call->key.copy.direction = row->direction;
}

/* Begins a copy, and reads all its data except sizes, direction and addresses. Returns NULL if the copy is not
 * counted. */
INLINE const volatile struct probe_row* begin_copy(struct pt_regs* ctx, struct task_struct* task, u32 number,
                                                   struct arguments* arguments, struct ended_call* call)
{
    const volatile struct probe_row* row = begin_call_of_row(ctx, task, number, SAMPLED_COPIES, call->kept);
    if (!row)
        return 0;
    struct call_key* key = &call->kept->call.key;
    key->kind = KIND_COPY;
    if (needs_entry_time())
        call->entry_ns = bpf_ktime_get_ns();
    begin_arguments(ctx, row, arguments);
    if (per_stream || emit_events || captures_open) {
        u64 stream = stream_argument(row, read_argument(arguments, row, ARG_STREAM));
        if (per_stream)
            key->stream = stream;
        if (row->asynchronous && under_capture(&key->image, stream))
            key->flags |= CALL_RECORDED;
        FORGET(key->flags);
    }
    return row;
}

INLINE int copy_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct arguments arguments;
    struct kept_call room = {};
    struct ended_call call = {.kept = &room};
    const volatile struct probe_row* row = begin_copy(ctx, task, traced_row(ctx, task), &arguments, &call);
    if (!row)
        return 1;
    call.kept->call.copy.copies = 1;
    call.kept->call.copy.begins = 1;
    read_copy(&arguments, row, &call.kept->call);
    if (arguments.error)
        lose(LOSS_ARGUMENTS, 1);
    if (need_return)
        return keep_call(ctx, task, call.kept, call.entry_ns) ? 0 : 1;
    record_copy(&call.kept->call, call.entry_ns, 0);
    return 1;
}

INLINE int copy_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct ended_call ended;
    if (end_call(ctx, task, &ended))
        record_copy(&ended.kept->call, ended.entry_ns, ended.duration_ns);
    return 0;
}

CALL_PROGRAMS(copy, copy_entry_body, copy_return_body)

#define COUNT_MAX (1 << 20) /* maximum number of copies counted per batch; higher numbers are assumed to be invalid */
#define BATCH_MAX 4096      /* maximum number of copies per call that are read individually */

/* The arguments of a batch, and the copy that is being counted. This struct is in task storage, not on the stack, for
 * the reason given at HAS_LOOPS. */
struct batch {
    struct arguments arguments;
    struct call element;
};

TASK_STORAGE_MAP(batches, struct batch);

INLINE struct batch* batch_of(struct task_struct* task)
{
    struct batch* batch = bpf_task_storage_get(&batches, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!batch)
        lose(LOSS_START, 1);
    return batch;
}

struct batch_walk {
    struct batch* batch;
    struct task_struct* task;
    const struct ended_call* call;
};

/* Reads one element from the lists of a batch. */
INLINE void read_listed(struct arguments* arguments, const volatile struct probe_row* row,
                        const struct copy_lists* lists, u32 index, struct call* call)
{
    struct copy* copy = &call->copy;
    u64 at = index * 8ULL, bytes = 0;
    u64 error = bpf_probe_read_user(&bytes, 8, (void*)(lists->bytes + at));
    error |= bpf_probe_read_user(&copy->destination, 8, (void*)(lists->destination + at));
    u32 source = MEMORY_UNKNOWN, destination = MEMORY_UNKNOWN;
    bool look = row->direction == DIRECTION_UNKNOWN || per_memory;
    if (has_argument(row, ARG_SOURCE)) {
        error |= bpf_probe_read_user(&copy->source, 8, (void*)(lists->source + at));
        if (look)
            source = memory_at(&call->key.image, copy->source, MEMORY_UNKNOWN);
    }
    if (look)
        destination = memory_at(&call->key.image, copy->destination, MEMORY_UNKNOWN);
    set_ends(row, &call->key, row->direction, source, destination);
    copy->sized = opaque(!error && bytes < BYTES_MAX);
    copy->bytes = copy->sized ? bytes : 0;
    arguments->error = error;
    if (error)
        call->key.copy.direction = row->direction;
}

/* Reads one copy of a batch. Returns true if some of its data was unreadable. */
OWN_FRAME int read_element(struct batch* batch, const struct kept_call* kept, u32 index)
{
    if (!batch || !kept)
        return 0;
    const volatile struct probe_row* row = probe_row(kept->row);
    struct arguments* arguments = &batch->arguments;
    if (row->kind == KIND_COPY_BATCH) {
        read_listed(arguments, row, &kept->call.lists, index, &batch->element);
    } else {
        arguments->block = kept->list + index * row->block_words * 8ULL;
        read_copy(arguments, row, &batch->element);
    }
    return arguments->error != 0;
}

/* Counts one copy of a batch. If the lists are too long, or continue in unreadable memory, counts the remaining copies
 * together, without size and direction. A batch without copies still counts as a call. */
static long record_batched(u32 index, struct batch_walk* walk)
{
    const struct kept_call* kept = walk->call->kept;
    const volatile struct probe_row* row = probe_row(kept->row);
    struct call* call = &walk->batch->element;
    u64 duration = opaque(index ? 0 : walk->call->duration_ns); /* count the call's duration only once */
    u32 left = kept->count - index;
    __builtin_memset(call, 0, sizeof(*call));
    call->key = kept->call.key;
    if (index)
        call->key.duration = BUCKET_NONE;
    u32 last = !left || index >= BATCH_MAX; /* not bool, because that would add a branch */
    if (last) {
        call->key.copy.direction = row->direction;
        call->copy.sized = !left;
    } else {
        last = read_element(walk->batch, kept, index);
    }
    last = opaque(last) & 1;
    call->copy.copies = last ? left : 1;
    call->copy.begins = index == 0;
    record_copy(call, walk->call->entry_ns, duration);
    return last;
}

INLINE void record_batch(struct batch_walk* walk)
{
    u32 count = walk->call->kept->count;
    if (HAS_LOOPS)
        bpf_loop(count <= BATCH_MAX ? count ?: 1 : BATCH_MAX + 1, record_batched, walk, 0);
    else
        record_batched(BATCH_MAX, walk);
    if (walk->batch->arguments.error)
        lose(LOSS_ARGUMENTS, 1);
}

/* Reads the data that all copies of a batch have in common. Returns false if the call is not counted. */
OWN_FRAME int begin_batch(struct pt_regs* ctx, u32 number, struct arguments* arguments, struct ended_call* call,
                          struct open_call* room)
{
    if (!ctx || !arguments || !call || !room)
        return 0;
    struct kept_call* kept = (struct kept_call*)room->word;
    call->kept = kept;
    const volatile struct probe_row* row = begin_copy(ctx, bpf_get_current_task_btf(), number, arguments, call);
    if (!row)
        return 0;
    u64 count = has_argument(row, ARG_COUNT) ? read_argument(arguments, row, ARG_COUNT) : 1;
    kept->count = opaque(count < COUNT_MAX ? count : COUNT_MAX);
    kept->list = arguments->block;
    if (row->kind == KIND_COPY_BATCH) {
        kept->call.lists.destination = read_argument(arguments, row, ARG_DESTINATION);
        kept->call.lists.source = read_argument(arguments, row, ARG_SOURCE);
        kept->call.lists.bytes = read_argument(arguments, row, ARG_BYTES);
    }
    return 1;
}

/* The call's data is built in thread_state, because the stack has no room for it. */
INLINE int batch_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = traced_row(ctx, task);
    if (!number)
        return 1;
    struct batch* batch = batch_of(task);
    struct open_call* room = batch ? open_call_of(ctx, task, PART_COUNT) : 0;
    if (!room)
        return 1;
    __builtin_memset(room->word, 0, sizeof(room->word));
    struct ended_call call = {.kept = (struct kept_call*)room->word};
    struct batch_walk walk = {.batch = batch, .task = task, .call = &call};
    if (!begin_batch(ctx, number, &batch->arguments, &call, room)) {
        room->sp_part = 0;
        return 1;
    }
    room->entry_ns = call.entry_ns;
    if (need_return)
        return 0;
    record_batch(&walk);
    room->sp_part = 0;
    return 1;
}

INLINE int batch_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct ended_call ended;
    if (!end_call(ctx, task, &ended))
        return 0;
    struct batch* batch = batch_of(task);
    if (!batch)
        return 0;
    struct batch_walk walk = {.batch = batch, .task = task, .call = &ended};
    begin_arguments(ctx, probe_row(ended.kept->row), &batch->arguments);
    record_batch(&walk);
    return 0;
}

CALL_PROGRAMS(batch, batch_entry_body, batch_return_body)

/* If both driver and runtime calls are counted, these programs detect the end of runtime calls that have no other
 * return probe. Driver calls cannot show this end, because a copy may make several driver calls, and we do not know
 * which of them is the last. */
INLINE int leave_entry_body(struct pt_regs* ctx)
{
    return is_idle(ctx) || !is_traced(bpf_get_current_task_btf());
}

INLINE int leave_return_body(struct pt_regs* ctx)
{
    struct thread_state* thread = thread_state(bpf_get_current_task_btf());
    if (thread)
        runtime_leave(ctx, thread);
    return 0;
}

CALL_PROGRAMS(leave, leave_entry_body, leave_return_body)

#endif
