/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Copies, sets and prefetches, counted in the kernel by row; one record per copy only for -e. */
#include "call.bpf.h"
#include "memory.bpf.h"
#include "state.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile bool per_memory = false; /* pinned or pageable, where names tell no more than host */
const volatile bool per_size = false;
const volatile bool measure_rate = false; /* in place of the duration */

INLINE void record(struct task_struct* task, struct call* call, u64 entry_ns, u64 duration_ns)
{
    struct copy* copy = &call->copy;
    struct call_key* key = &call->key;
    if (per_size)
        key->copy.size = copy->sized ? histogram_bucket(copy->bytes) : BUCKET_NONE;
    if (measure_rate) {
        /* Bytes per microsecond are megabytes per second. What returns before the copy is done says nothing of it: that
         * is what sets do, too, whatever they are called. */
        bool timed = copy->sized && duration_ns && !key->result && key->copy.direction != DIRECTION_SET &&
                     !(key->flags & (CALL_ASYNCHRONOUS | CALL_RECORDED));
        key->duration = timed ? histogram_bucket(copy->bytes * 1000 / duration_ns) : BUCKET_NONE;
    }
    struct call_stats* stats = count_call(task, call, copy->copies, entry_ns, duration_ns);
    if (!stats)
        return;
    if (!copy->sized)
        add(&stats->copy.unsized, copy->copies);
    else if (copy->bytes < SMALL_COPY)
        add(&stats->copy.small, copy->copies);
    add(&stats->copy.bytes, copy->bytes);
    if (copy->copies != copy->begins)
        add(&stats->copy.continued, (u64)copy->copies - copy->begins);
}

INLINE bool is_host(u32 memory)
{
    return memory == MEMORY_PINNED || memory == MEMORY_PAGEABLE || memory == MEMORY_HOST;
}

INLINE bool is_device(u32 memory)
{
    return memory == MEMORY_DEVICE || memory == MEMORY_ARRAY;
}

INLINE u32 direction_between(u32 source, u32 destination)
{
    if (is_host(source))
        return is_host(destination) ? DIRECTION_H2H : is_device(destination) ? DIRECTION_H2D : DIRECTION_UNKNOWN;
    if (is_device(source))
        return is_host(destination) ? DIRECTION_D2H : is_device(destination) ? DIRECTION_D2D : DIRECTION_UNKNOWN;
    return DIRECTION_UNKNOWN;
}

/* What a direction says about its ends. */
INLINE u32 source_of(u32 direction)
{
    switch (direction) {
    case DIRECTION_H2D:
    case DIRECTION_H2H:
        return MEMORY_HOST;
    case DIRECTION_D2H:
    case DIRECTION_D2D:
    case DIRECTION_P2P:
        return MEMORY_DEVICE;
    }
    return MEMORY_UNKNOWN;
}

INLINE u32 destination_of(u32 direction)
{
    switch (direction) {
    case DIRECTION_H2D:
    case DIRECTION_D2D:
    case DIRECTION_P2P:
        return MEMORY_DEVICE;
    case DIRECTION_D2H:
    case DIRECTION_H2H:
        return MEMORY_HOST;
    }
    return MEMORY_UNKNOWN;
}

/* One end of a copy: its arguments, by number. */
struct end {
    u32 address;
    u32 host_address;
    u32 type;
    u32 array;
};

/* Types of a structure: CUmemorytype, and in batches CUmemcpy3DOperandType. */
INLINE u32 memory_of_type(const volatile struct probe_row* row, u64 type)
{
    if (row->kind == KIND_COPY_BATCH_3D)
        return type == 2 ? MEMORY_ARRAY : MEMORY_UNKNOWN;
    switch (type) {
    case 1:
        return MEMORY_HOST;
    case 2:
        return MEMORY_DEVICE;
    case 3:
        return MEMORY_ARRAY;
    }
    return MEMORY_UNKNOWN; /* unified: the address tells */
}

INLINE u32 memory_of_end(struct arguments* arguments, const struct image* image, struct end end, u32 expected,
                         u64* address)
{
    const volatile struct probe_row* row = probe_row(arguments->row);
    if (!has_argument(row, end.address) && !has_argument(row, end.array))
        return MEMORY_DEVICE; /* a variable by its name */
    u64 array = read_argument(arguments, end.array, 0);
    if (array) {
        *address = array;
        return MEMORY_ARRAY;
    }
    if (has_argument(row, end.type))
        expected = memory_of_type(row, read_argument(arguments, end.type, 0));
    bool look = per_memory || expected == MEMORY_UNKNOWN;
    if (!look && !emit_events)
        return expected;
    bool in_host_field = expected == MEMORY_HOST && has_argument(row, end.host_address);
    *address = read_argument(arguments, in_host_field ? end.host_address : end.address, 0);
    if (!look || expected == MEMORY_ARRAY || arguments->unreadable)
        return expected;
    return memory_at(image, *address, expected);
}

INLINE u32 direction_of_kind(u64 kind)
{
    switch (kind) { /* enum cudaMemcpyKind; 4: the addresses tell */
    case 0:
        return DIRECTION_H2H;
    case 1:
        return DIRECTION_H2D;
    case 2:
        return DIRECTION_D2H;
    case 3:
        return DIRECTION_D2D;
    }
    return DIRECTION_UNKNOWN;
}

/* Direction and memory of a copy, and its addresses where they are wanted. */
INLINE void read_ends(struct arguments* arguments, struct call* call)
{
    struct call_key* key = &call->key;
    u32 direction = probe_row(arguments->row)->direction;
    if (direction == DIRECTION_UNKNOWN)
        direction = direction_of_kind(read_argument(arguments, ARG_DIRECTION, 4));
    bool open = direction == DIRECTION_UNKNOWN;
    u32 source = MEMORY_UNKNOWN, destination = MEMORY_UNKNOWN;
    if (open || per_memory || emit_events) {
        const struct end from = {ARG_SOURCE, ARG_SOURCE_HOST, ARG_SOURCE_TYPE, ARG_SOURCE_ARRAY};
        const struct end to = {ARG_DESTINATION, ARG_DESTINATION_HOST, ARG_DESTINATION_TYPE, ARG_DESTINATION_ARRAY};
        destination = memory_of_end(arguments, &key->image, to, destination_of(direction), &call->copy.destination);
        if (direction != DIRECTION_SET && direction != DIRECTION_PREFETCH)
            source = memory_of_end(arguments, &key->image, from, source_of(direction), &call->copy.source);
    }
    key->copy.direction = open && !arguments->unreadable ? direction_between(source, destination) : direction;
    if (per_memory)
        key->copy.memory = copy_memory(source, destination);
}

#define BYTES_MAX (1ULL << 48) /* more than there are addresses */

INLINE bool times(u64* bytes, u64 factor)
{
    if (factor && *bytes > BYTES_MAX / factor)
        return false;
    *bytes *= factor;
    return true;
}

INLINE void read_size(struct arguments* arguments, struct copy* copy)
{
    const volatile struct probe_row* row = probe_row(arguments->row);
    u64 bytes = read_argument(arguments, ARG_BYTES, 0);
    u64 height = read_argument(arguments, ARG_HEIGHT, 1);
    u64 depth = read_argument(arguments, ARG_DEPTH, 1);
    /* The size of an array's elements was said when it was made. */
    bool in_elements = false;
    if (row->array_elements && row->kind == KIND_COPY_BATCH_3D)
        in_elements = memory_of_type(row, read_argument(arguments, ARG_SOURCE_TYPE, 0)) == MEMORY_ARRAY ||
                      memory_of_type(row, read_argument(arguments, ARG_DESTINATION_TYPE, 0)) == MEMORY_ARRAY;
    else if (row->array_elements)
        in_elements =
            read_argument(arguments, ARG_SOURCE_ARRAY, 0) || read_argument(arguments, ARG_DESTINATION_ARRAY, 0);
    copy->sized = !arguments->unreadable && !in_elements && times(&bytes, height) && times(&bytes, depth) &&
                  times(&bytes, row->element_bytes) && bytes < BYTES_MAX;
    copy->bytes = copy->sized ? bytes : 0;
}

#define COUNT_MAX (1 << 20) /* no batch has more: a call that says so fails */
#define BATCH_MAX 4096      /* copies of one call that are looked at one by one */

struct batch_walk {
    struct arguments arguments;
    struct task_struct* task;
    const struct ended_call* call;
};

/* Element of the lists of a batch. */
INLINE bool read_listed(const volatile struct probe_row* row, const struct copy* lists, u32 index, struct call* call)
{
    struct copy* copy = &call->copy;
    struct call_key* key = &call->key;
    u64 at = index * 8ULL;
    bool readable = bpf_probe_read_user(&copy->bytes, 8, (void*)(lists->bytes + at)) == 0;
    readable &= bpf_probe_read_user(&copy->destination, 8, (void*)(lists->destination + at)) == 0;
    copy->source = 0;
    u32 source = MEMORY_UNKNOWN, destination = MEMORY_UNKNOWN;
    key->copy.direction = row->direction;
    if (has_argument(row, ARG_SOURCE))
        readable &= bpf_probe_read_user(&copy->source, 8, (void*)(lists->source + at)) == 0;
    copy->sized = readable && copy->bytes < BYTES_MAX;
    if (!copy->sized)
        copy->bytes = 0;
    if (!readable)
        return false;
    if (row->direction == DIRECTION_UNKNOWN || per_memory) {
        destination = memory_at(&key->image, copy->destination, MEMORY_UNKNOWN);
        if (has_argument(row, ARG_SOURCE))
            source = memory_at(&key->image, copy->source, MEMORY_UNKNOWN);
    }
    if (row->direction == DIRECTION_UNKNOWN)
        key->copy.direction = direction_between(source, destination);
    if (per_memory)
        key->copy.memory = copy_memory(source, destination);
    return true;
}

static long record_element(u32 index, struct batch_walk* walk)
{
    const struct kept_call* kept = &walk->call->kept;
    const volatile struct probe_row* row = probe_row(kept->row);
    struct call call = {.key = kept->call.key};
    struct copy* copy = &call.copy;
    u64 duration = index ? 0 : walk->call->duration_ns; /* there is one of the call */
    copy->copies = 1;
    copy->begins = index == 0;
    if (index)
        call.key.duration = BUCKET_NONE;
    if (row->kind == KIND_COPY_BATCH) {
        walk->arguments.unreadable = !read_listed(row, &kept->call.copy, index, &call);
    } else {
        walk->arguments.block = kept->list + index * row->block_words * 8ULL;
        read_size(&walk->arguments, copy);
        read_ends(&walk->arguments, &call);
    }
    record(walk->task, &call, walk->call->entry_ns, duration);
    return walk->arguments.unreadable != 0;
}

/* Each copy of a batch by itself. What is left where the lists are too long, or end in unreadable memory, is counted
 * without size and direction. A batch of none is a call all the same. */
INLINE void record_batch(struct pt_regs* ctx, struct task_struct* task, const struct ended_call* call)
{
    struct batch_walk walk = {.task = task, .call = call};
    begin_arguments(ctx, call->kept.row, &walk.arguments);
    u32 count = call->kept.count, done = 0;
    if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))
        done = bpf_loop(count < BATCH_MAX ? count : BATCH_MAX, record_element, &walk, 0);
    if (walk.arguments.unreadable)
        lose(LOSS_ARGUMENTS, 1);
    if (count && done >= count)
        return;
    struct call rest = {.key = call->kept.call.key};
    rest.key.copy.direction = probe_row(call->kept.row)->direction;
    if (done)
        rest.key.duration = BUCKET_NONE;
    rest.copy.copies = count - done;
    rest.copy.sized = !count;
    rest.copy.begins = !done;
    record(task, &rest, call->entry_ns, done ? 0 : call->duration_ns);
}

INLINE bool is_batch(const volatile struct probe_row* row)
{
    return row->kind == KIND_COPY_BATCH || row->kind == KIND_COPY_BATCH_3D;
}

INLINE int copy_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!wanted(task))
        return 1;
    u32 number = row_number(ctx);
    if (!number)
        return 1;
    const volatile struct probe_row* row = probe_row(number);
    struct ended_call call = {.kept = {.row = number}};
    struct kept_call* kept = &call.kept;
    struct call_key* key = &kept->call.key;
    key->image = image_of(task);
    if (row->layer == LAYER_RUNTIME)
        mark_runtime(ctx, task, 0, DRIVER_CALLS_ANY);
    else if (count_runtime && runtime_call_around(ctx, task))
        return 1;
    begin_key(ctx, task, row, number, key);
    key->kind = KIND_COPY;
    key->flags = row->asynchronous ? CALL_ASYNCHRONOUS : 0;
    if (emit_events || measure_latency)
        call.entry_ns = bpf_ktime_get_ns();

    struct arguments arguments;
    begin_arguments(ctx, number, &arguments);
    if (per_stream || emit_events || captures_begun) {
        u64 stream = stream_argument(row, read_argument(&arguments, ARG_STREAM, 0));
        if (per_stream)
            key->stream = stream;
        if (row->asynchronous && under_capture(&key->image, stream))
            key->flags |= CALL_RECORDED;
    }
    if (is_batch(row)) {
        u64 count = has_argument(row, ARG_COUNT) ? register_argument(ctx, row, ARG_COUNT) : 1;
        kept->count = count < COUNT_MAX ? count : COUNT_MAX;
        kept->list = arguments.block;
        if (row->kind == KIND_COPY_BATCH) {
            kept->call.copy.destination = register_argument(ctx, row, ARG_DESTINATION);
            kept->call.copy.source = register_argument(ctx, row, ARG_SOURCE);
            kept->call.copy.bytes = register_argument(ctx, row, ARG_BYTES);
        }
    } else {
        kept->call.copy.copies = 1;
        kept->call.copy.begins = 1;
        read_size(&arguments, &kept->call.copy);
        read_ends(&arguments, &kept->call);
        if (arguments.unreadable)
            lose(LOSS_ARGUMENTS, 1);
    }
    if (need_return)
        return keep_call(ctx, task, kept, call.entry_ns) ? 0 : 1;
    if (is_batch(row))
        record_batch(ctx, task, &call);
    else
        record(task, &kept->call, call.entry_ns, 0);
    return 1;
}

INLINE int copy_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct ended_call ended;
    if (!wanted(task) || !end_call(ctx, task, &ended))
        return 0;
    if (is_batch(probe_row(ended.kept.row)))
        record_batch(ctx, task, &ended);
    else
        record(task, &ended.kept.call, ended.entry_ns, ended.duration_ns);
    return 0;
}

CALL_PROGRAMS(copy, copy_entry_body, copy_return_body)

/* Where both layers are counted, and nothing else is to be known of a runtime call's return. A copy may take several
 * driver calls, so that none of them tells that it was the last. */
INLINE int leave_entry_body(struct pt_regs* ctx)
{
    return is_idle((u32)bpf_get_attach_cookie(ctx)) || !wanted(bpf_get_current_task_btf());
}

INLINE int leave_return_body(struct pt_regs* ctx)
{
    struct thread_state* thread = thread_state(bpf_get_current_task_btf());
    if (thread)
        runtime_leave(ctx, thread);
    return 0;
}

CALL_PROGRAMS(leave, leave_entry_body, leave_return_body)
