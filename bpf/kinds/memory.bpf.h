/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Allocations and frees. They are counted in rows, and each free is matched with its allocation. */
#ifndef GPUSNOOP_MEMORY_BPF_H
#define GPUSNOOP_MEMORY_BPF_H

#include "base/api_call.bpf.h"
#include "kinds/context.bpf.h"
#include "kinds/holding.bpf.h"

/* Reads the size of an allocation, which is given in bytes, as rows with a pitch, or as elements of an array. */

/* Bytes per channel for each enum CUarray_format; 0: the format has blocks or planes, so the size is not computed. */
static const volatile u8 bytes_of_format[64] = {
    [0x01] = 1, [0x02] = 2, [0x03] = 4, [0x08] = 1, [0x09] = 2, [0x0a] = 4, [0x10] = 2, [0x20] = 4,
};

INLINE u64 bytes_of_element(struct arguments* arguments, const volatile struct probe_row* row)
{
    if (has_argument(row, ARG_FORMAT)) {
        u64 format = read_argument_alike(arguments, row, ARG_FORMAT);
        u64 bytes = bytes_of_format[format & 63];
        return format < 64 ? bytes * read_argument_alike(arguments, row, ARG_CHANNELS) : 0;
    }
    s32 bits[4] = {};
    arguments->error |=
        bpf_probe_read_user(bits, sizeof(bits), (void*)read_argument_alike(arguments, row, ARG_CHANNEL_BITS));
    return (u32)(bits[0] + bits[1] + bits[2] + bits[3]) / 8;
}

#define LEVELS_MAX 32

/* Computes an array's size from its descriptor. The driver may allocate more, because it rounds up. */
INLINE bool array_bytes(struct arguments* arguments, const volatile struct probe_row* row, u64* bytes)
{
    u64 element = bytes_of_element(arguments, row);
    u64 width = read_argument_alike(arguments, row, ARG_BYTES);
    u64 height = read_argument_alike(arguments, row, ARG_HEIGHT) ?: 1;
    u64 depth = read_argument_alike(arguments, row, ARG_DEPTH) ?: 1;
    u64 levels = has_argument(row, ARG_LEVELS) ? read_argument_alike(arguments, row, ARG_LEVELS) : 1;
    u64 elements = width;
    if (!element || !multiply_checked(&elements, height) || !multiply_checked(&elements, depth) ||
        !multiply_checked(&elements, element))
        return false;
    *bytes = 0;
    for (u32 i = 0; i < LEVELS_MAX && i < levels; i++) {
        *bytes += width * height * depth * element;
        width = opaque(width > 1 ? width / 2 : 1);
        height = opaque(height > 1 ? height / 2 : 1);
        depth = opaque(depth > 1 ? depth / 2 : 1);
    }
    return true;
}

/* Reads the size of an allocation. If the allocation has a pitch, returns the number of rows, else 0. The driver
 * chooses the pitch, so read_results() computes the final size when the call returns. */
INLINE u32 read_bytes(struct arguments* arguments, const volatile struct probe_row* row, struct memory_call* memory)
{
    u64 bytes = 0, rows = 0;
    bool sized = true;
    if (has_argument(row, ARG_FORMAT) || has_argument(row, ARG_CHANNEL_BITS)) {
        sized = array_bytes(arguments, row, &bytes);
    } else if (has_argument(row, ARG_PITCH)) {
        bytes = read_argument_alike(arguments, row, ARG_BYTES);
        rows = read_argument_alike(arguments, row, ARG_HEIGHT);
        sized = multiply_checked(&rows, read_argument_alike(arguments, row, ARG_DEPTH)) && rows == (u32)rows &&
                multiply_checked(&bytes, rows);
    } else {
        bytes = read_argument_alike(arguments, row, ARG_BYTES);
        sized = has_argument(row, ARG_BYTES);
    }
    memory->sized = opaque(sized && !arguments->error);
    memory->bytes = memory->sized ? bytes : 0;
    return opaque(rows);
}

/* Counts allocations and frees. A free looks up its allocation in the table of live allocations, and is counted in the
 * allocation's row. So the live memory of a row is the difference between its allocated bytes and its freed bytes. */

const volatile bool stacks_of_allocations = false; /* read stacks even if per_stack is not set */
const volatile bool measure_lifetime = false;      /* if true, the histogram has lifetimes instead of durations */

OWN_FRAME int count_memory(struct task_struct* task, struct call* call, u64 entry_ns, u64 duration_ns)
{
    if (!task || !call)
        return 0;
    struct call_key* key = &call->key;
    struct memory_call* memory = &call->memory;
    if (!per_device)
        key->device = DEVICE_UNKNOWN;
    bool with_age = memory->since_ns && (emit_events || measure_lifetime);
    u64 now = with_age || key->result ? bpf_ktime_get_ns() : 0;
    u64 age = with_age && memory->since_ns < now ? now - memory->since_ns : 0;
    if (per_size)
        key->memory.size = memory->sized ? histogram_bucket(memory->bytes) : BUCKET_NONE;
    if (measure_lifetime)
        key->duration = age && !key->result ? duration_bucket(age) : BUCKET_NONE;
    memory->age_ns = age;
    struct call_stats* stats = count_call(task, call, 1, entry_ns, duration_ns);
    if (!stats)
        return 0;
    u64 sums[CALL_FIGURES] = {};
    sums_of_memory(memory, sums);
    add_kind_sums(stats, sums);
    if (key->result) {
        guard_begin();
        stats->v[MEMORY_LAST_BYTES] = memory->bytes;
        stats->v[CALL_LAST] = now;
        guard_end();
    }
    return 0;
}

/* Returns `holding`, but replaces HOLDING_VMM by HOLDING_PINNED if the location is on the host. In enum
 * CUmemLocationType, 1 is a device, and 2 to 4 are the host. */
INLINE u32 physical_holding(u32 location, u32 holding)
{
    return holding == HOLDING_VMM && location >= 2 && location <= 4 ? HOLDING_PINNED : holding;
}

/* Returns the device on which a thread allocates memory: the device of its current context. */
INLINE u8 device_of_thread(const struct image* image, struct task_struct* task, u32 layer)
{
    struct thread_state* thread = thread_state(task);
    if (!thread)
        return DEVICE_UNKNOWN;
    begin_image(thread, image);
    if (layer == LAYER_HIP)
        return (u8)(hip_device_of(task, thread) - 1);
    struct context* context = thread->context ? context_of(image, thread->context) : 0;
    return (u8)((context ? context->device : *device_by(thread, layer)) - 1);
}

/* True if the call is recorded into a graph, not executed. Also sets key->stream if rows are per stream. */
INLINE bool is_captured(struct arguments* arguments, const volatile struct probe_row* row, struct call_key* key)
{
    if (!row->asynchronous || !(captures_open || per_stream))
        return false;
    u64 stream = stream_argument(row, read_argument_alike(arguments, row, ARG_STREAM));
    if (per_stream)
        key->stream = stream;
    return under_capture(&key->image, stream);
}

OWN_FRAME int read_stack_own_frame(struct pt_regs* ctx, struct call_key* key)
{
    if (ctx && key)
        read_stack(ctx, key, COPIED_AT_ENTRY);
    return 0;
}

OWN_FRAME int alloc_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct arguments arguments;
    struct kept_call kept = {};
    const volatile struct probe_row* row = begin_call(ctx, task, &kept);
    if (!row)
        return 1;
    struct call_key* key = &kept.call.key;
    struct memory_call* memory = &kept.call.memory;
    u32 holding = row->holding;
    key->kind = opaque(row->kind == KIND_TRIM ? KIND_TRIM : KIND_ALLOC);
    begin_arguments(ctx, row, &arguments);
    if (stacks_of_allocations && !per_stack)
        read_stack_own_frame(ctx, key);
    if (per_device || follow)
        key->device = opaque(device_of_thread(&key->image, task, row->layer));
    if (has_argument(row, ARG_LOCATION)) {
        u32 location = read_argument_alike(&arguments, row, ARG_LOCATION);
        holding = physical_holding(location, holding);
        key->device = opaque(location == 1 ? read_argument_alike(&arguments, row, ARG_DEVICE) : DEVICE_UNKNOWN);
    }
    if (is_captured(&arguments, row, key) || (holding == HOLDING_GRAPH && key->kind != KIND_TRIM)) {
        holding = HOLDING_GRAPH;
        key->flags |= CALL_RECORDED;
    }
    FORGET(key->flags);
    key->memory.holding = opaque(holding);
    memory->address = read_argument_alike(&arguments, row, ARG_ADDRESS);
    if (has_argument(row, ARG_OUT))
        kept.out = read_argument_alike(&arguments, row, ARG_OUT) + row->out_offset;
    else
        kept.handle = read_argument_alike(&arguments, row, ARG_HANDLE);
    if (key->kind != KIND_TRIM)
        kept.pitch_rows = opaque(read_bytes(&arguments, row, memory));
    memory->pitch_at =
        opaque(has_argument(row, ARG_PITCH) ? read_argument_alike(&arguments, row, ARG_PITCH) + row->pitch_offset : 0);
    if (arguments.error)
        lose(LOSS_ARGUMENTS, 1);
    u64 now = measure_latency || emit_events ? bpf_ktime_get_ns() : 0;
    return keep_call(ctx, task, &kept, now) ? 0 : 1;
}

/* Reads the results of a call: the address or handle, and the pitch. Returns false if they are unreadable. */
INLINE bool read_results(const volatile struct probe_row* row, struct kept_call* kept)
{
    struct memory_call* memory = &kept->call.memory;
    u64 pitch = 0, error = 0;
    if (row->kind == KIND_ALLOC || row->kind == KIND_PHYSICAL_NEW)
        error |= bpf_probe_read_user(&memory->address, 8, (void*)kept->out);
    if (has_argument(row, ARG_PITCH)) {
        error |= bpf_probe_read_user(&pitch, 8, (void*)memory->pitch_at);
        u64 bytes = kept->pitch_rows;
        memory->sized = opaque(memory->sized && !error && multiply_checked(&bytes, pitch));
        memory->bytes = memory->sized ? bytes : 0;
    }
    memory->since_ns = 0;
    return !error;
}

/* Returns the key by which a free will find this allocation. */
INLINE u64 place_made(const volatile struct probe_row* row, struct kept_call* kept)
{
    struct call_key* key = &kept->call.key;
    struct memory_call* memory = &kept->call.memory;
    if (row->kind == KIND_PHYSICAL_NEW) {
        u64 number = new_physical(&key->image, memory->address);
        return number ? held_key(&key->image, number, SPACE_PHYSICAL).place : 0;
    }
    if (row->kind == KIND_MAP)
        add_mapping(&key->image, memory->address, kept->handle);
    return held_key(&key->image, memory->address, space_of(row->holding)).place;
}

OWN_FRAME int alloc_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct ended_call ended;
    if (!end_call(ctx, task, &ended))
        return 0;
    struct kept_call* kept = ended.kept;
    const volatile struct probe_row* row = probe_row(kept->row);
    struct call_key* key = &kept->call.key;
    struct memory_call* memory = &kept->call.memory;
    if (!key->result && key->kind == KIND_ALLOC) {
        bool readable = read_results(row, kept);
        if (readable && !memory->address)
            return 0; /* an allocation of 0 bytes by the runtime: there is nothing to track */
        u64 place = readable ? place_made(row, kept) : 0;
        if (place)
            track_held(task, &kept->call, place, bpf_ktime_get_ns());
        else
            key->flags |= CALL_UNTRACKED;
        if (!readable)
            lose(LOSS_UNTRACKED, 1);
    }
    memory->since_ns = 0;
    count_memory(task, &kept->call, ended.entry_ns, ended.duration_ns);
    return 0;
}

CALL_PROGRAMS(alloc, alloc_entry_body, alloc_return_body)

/* Removes an allocation at the entry of its free, because another thread may be given the address before the call
 * returns. */
INLINE int free_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct arguments arguments;
    struct kept_call kept = {};
    const volatile struct probe_row* row = begin_call_of_process(ctx, task, &kept);
    if (!row)
        return 1;
    struct call_key* key = &kept.call.key;
    begin_arguments(ctx, row, &arguments);
    u64 address = read_argument(&arguments, row, ARG_ADDRESS);
    key->kind = KIND_FREE;
    kept.call.memory.address = address;
    bool in_graph = is_captured(&arguments, row, key) || row->holding == HOLDING_GRAPH;
    if (in_graph)
        key->flags |= CALL_RECORDED;
    FORGET(key->flags);
    struct held_key place = held_key(&key->image, address, space_of(row->holding));
    struct held entry = {};
    if (follow && find_held(&place, &entry)) {
        fill_from_held(&kept.call, &entry);
        /* Each launch of a graph allocates the graph's memory again. So a free outside of graphs does not remove the
         * allocation. Only a free node of a graph does. */
        if (entry.holding == HOLDING_GRAPH && !in_graph)
            key->flags |= CALL_UNTRACKED;
        else
            kept.taken_out = opaque(remove_held(&place));
    } else if (!is_traced(task)) {
        return 1;
    }
    u64 now = measure_latency || emit_events ? bpf_ktime_get_ns() : 0;
    if (keep_call(ctx, task, &kept, now))
        return 0;
    if (kept.taken_out)
        put_held(&place, &entry, BPF_NOEXIST);
    return 1;
}

INLINE int free_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct ended_call ended;
    if (!end_call(ctx, task, &ended))
        return 0;
    struct kept_call* kept = ended.kept;
    struct call_key* key = &kept->call.key;
    if (!kept->call.memory.address)
        return 0; /* a free of NULL does nothing and never fails */
    if (kept->taken_out) {
        struct held entry = held_from_call(&kept->call);
        if (key->result) {
            u32 holding = probe_row(kept->row)->holding;
            struct held_key place = held_key(&key->image, kept->call.memory.address, space_of(holding));
            if (put_held(&place, &entry, BPF_NOEXIST))
                lose(LOSS_STATE, 1);
        } else {
            uncount_held(&key->image, &entry);
        }
    }
    count_memory(task, &kept->call, ended.entry_ns, ended.duration_ns);
    return 0;
}

CALL_PROGRAMS(free, free_entry_body, free_return_body)

OWN_FRAME int describe_held(struct held_key* place, struct call* call)
{
    struct held entry = {};
    if (!place || !call || !find_held(place, &entry))
        return 0;
    fill_from_held(call, &entry);
    return 1;
}

/* Returns the size of the mapping at `place`, or 0 if there is none. */
OWN_FRAME u64 mapped_bytes(struct held_key* place, u64* since_ns)
{
    struct held entry = {};
    if (!place || !since_ns || !find_held(place, &entry) || entry.holding != HOLDING_MAPPED)
        return 0;
    *since_ns = entry.since_ns;
    return entry.bytes;
}

/* Removes an allocation and copies its fields to `call`. Returns false if there was no allocation. */
OWN_FRAME int remove_allocation_held(struct held_key* place, struct call* call)
{
    struct held entry = {};
    if (!place || !call || !find_held(place, &entry) || !remove_held(place))
        return 0;
    fill_from_held(call, &entry);
    uncount_held(&place->image, &entry);
    return 1;
}

/* Removes an allocation and counts it as freed. `ended` has the fields that are the same for all allocations that the
 * call frees. Returns false if there was no allocation. */
OWN_FRAME int count_freed(struct task_struct* task, const struct ended_call* ended, struct held_key* place)
{
    if (!task || !ended || !place)
        return 0;
    struct call call = ended->kept->call;
    if (!remove_allocation_held(place, &call))
        return 0;
    count_memory(task, &call, ended->entry_ns, ended->duration_ns);
    return 1;
}

OWN_FRAME int handle_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct arguments arguments;
    struct kept_call kept = {};
    const volatile struct probe_row* row = begin_call_of_process(ctx, task, &kept);
    if (!row)
        return 1;
    struct call_key* key = &kept.call.key;
    begin_arguments(ctx, row, &arguments);
    key->kind = KIND_FREE;
    kept.is_wanted = opaque(is_traced(task));
    kept.call.memory.bytes = read_argument(&arguments, row, ARG_BYTES);
    if (row->kind == KIND_UNMAP)
        kept.call.memory.address = read_argument(&arguments, row, ARG_ADDRESS);
    else if (row->kind == KIND_PHYSICAL_FREE)
        kept.call.memory.address = read_argument(&arguments, row, ARG_HANDLE);
    else
        kept.call.memory.address = read_argument(&arguments, row, ARG_OUT);
    if (row->kind == KIND_PHYSICAL_FREE && follow) {
        /* Done at the entry of the call, because another thread may be given the handle before the call returns. */
        u64 number = number_of_handle(&key->image, kept.call.memory.address);
        struct physical* physical = physical_of(&key->image, number);
        if (physical && __sync_fetch_and_add(&physical->references, -1) == 1)
            forget_handle(&key->image, kept.call.memory.address);
        kept.physical = number;
    }
    if (keep_call(ctx, task, &kept, bpf_ktime_get_ns()))
        return 0;
    restore_handle(&key->image, kept.call.memory.address, kept.physical);
    return 1;
}

/* Counts physical memory as freed. Called when the memory has neither handles nor mappings left. */
INLINE void count_physical_freed(struct task_struct* task, const struct ended_call* ended, u64 number)
{
    const struct image* image = &ended->kept->call.key.image;
    struct held_key place = held_key(image, number, SPACE_PHYSICAL);
    forget_physical(image, number);
    count_freed(task, ended, &place);
}

INLINE void finish_release(struct task_struct* task, struct ended_call* ended)
{
    struct call_key* key = &ended->kept->call.key;
    u64 number = ended->kept->physical;
    struct physical* physical = physical_of(&key->image, number);
    if (physical && key->result) {
        restore_handle(&key->image, ended->kept->call.memory.address, number);
    } else if (physical && physical->references <= 0 && physical->mappings <= 0) {
        count_physical_freed(task, ended, number);
        return;
    }
    if (physical && !key->result)
        return; /* not a free, because the memory has other references or is still mapped */
    struct held_key place = held_key(&key->image, number, SPACE_PHYSICAL);
    bool known = number && describe_held(&place, &ended->kept->call);
    if (!known && !ended->kept->is_wanted)
        return;
    count_memory(task, &ended->kept->call, ended->entry_ns, ended->duration_ns);
}

struct unmap_walk {
    struct task_struct* task;
    struct ended_call* ended;
    u64 address;
    u64 end;
};

/* Removes one mapping. Skips a mapping that is younger than the call: another thread has made it at the same address
 * after the call freed the address. */
static long unmap_next(u32 index, struct unmap_walk* walk)
{
    struct ended_call* ended = walk->ended;
    const struct image* image = &ended->kept->call.key.image;
    struct held_key place = held_key(image, walk->address, SPACE_ADDRESS);
    u64 since_ns = 0, bytes = walk->address < walk->end ? mapped_bytes(&place, &since_ns) : 0;
    if (!bytes)
        return 1;
    if (since_ns < ended->entry_ns) {
        ended->kept->call.memory.address = walk->address;
        count_freed(walk->task, ended, &place);
        ended->kept->call.key.duration = BUCKET_NONE; /* count the call's duration only once */
        u64 number = drop_mapping(image, walk->address);
        if (number)
            count_physical_freed(walk->task, ended, number);
    }
    walk->address += bytes;
    return 0;
}

#define MAPPINGS_MAX (1 << 16) /* maximum number of mappings that are removed per call */

INLINE void finish_unmap(struct task_struct* task, struct ended_call* ended)
{
    struct memory_call* memory = &ended->kept->call.memory;
    struct unmap_walk walk = {
        .task = task, .ended = ended, .address = memory->address, .end = memory->address + memory->bytes};
    if (HAS_LOOPS)
        bpf_loop(MAPPINGS_MAX, unmap_next, &walk, 0);
    else
        unmap_next(0, &walk);
    if (walk.address < walk.end && ended->kept->is_wanted) {
        memory->address = walk.address;
        memory->bytes = 0;
        count_memory(task, &ended->kept->call, ended->entry_ns, ended->duration_ns);
    }
}

OWN_FRAME int handle_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct ended_call ended;
    if (!end_call(ctx, task, &ended))
        return 0;
    struct call_key* key = &ended.kept->call.key;
    u32 kind = probe_row(ended.kept->row)->kind;
    key->device = DEVICE_UNKNOWN;
    if (kind == KIND_PHYSICAL_FREE && follow) {
        finish_release(task, &ended);
    } else if (kind == KIND_PHYSICAL_RETAIN) {
        u64 number = number_of_handle(&key->image, read_word(ended.kept->call.memory.address));
        struct physical* physical = key->result ? 0 : physical_of(&key->image, number);
        if (physical)
            __sync_fetch_and_add(&physical->references, 1);
    } else if (kind == KIND_UNMAP && follow && !key->result) {
        finish_unmap(task, &ended);
    } else if (ended.kept->is_wanted) {
        key->memory.holding = probe_row(ended.kept->row)->holding;
        count_memory(task, &ended.kept->call, ended.entry_ns, ended.duration_ns);
    }
    return 0;
}

CALL_PROGRAMS(handle, handle_entry_body, handle_return_body)

#endif
