/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Kernel launches, counted in the kernel by row; one record per launch only for -e. */
#include "cudalaunch.h"
#include "common.bpf.h"
#include "histogram.h"
#include "state.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* What the chosen view tells apart; a thing that is not asked for costs nothing and makes no rows. */
const volatile bool per_thread = false;
const volatile bool per_kernel = true;
const volatile bool per_stream = false;
const volatile bool per_shape = true;
const volatile bool per_device = false;
const volatile bool per_stack = false;
const volatile bool per_cgroup = false;

const volatile bool emit_events = false;
const volatile bool need_return = false; /* result or latency */
const volatile bool only_failed = false;
const volatile bool measure_gap = false;
const volatile bool measure_latency = false;
const volatile __u64 duration_unit_ns = 1; /* what buckets of the duration count in */
const volatile bool count_runtime = false; /* --api runtime, both */

bool naming = false; /* runtime launches are marked now, so that handles get their names */

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, 16384); /* set by the front end, as is how much of the key counts */
    __uint(key_size, sizeof(struct launch_key));
    __uint(value_size, sizeof(struct launch_stats));
} launches SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_STACK_TRACE);
    __uint(max_entries, 16384);
    __uint(key_size, sizeof(u32));
    __uint(value_size, 127 * sizeof(u64));
} stacks SEC(".maps");

struct launch {
    struct launch_key key;
    struct launch_shape shape;
};

/* What the return probe needs of the entry. */
struct open_launch {
    struct launch launch; /* of a list: not read yet */
    u32 row;
    u32 count;
    u64 list;
};

_Static_assert(sizeof(struct open_launch) <= OPEN_CALL_WORDS * 8, "a launch is kept in an open call");

INLINE bool send(u32 type, struct task_struct* task, const struct launch* launch, u64 entry_ns, u64 duration_ns)
{
    struct launch_event* event = bpf_ringbuf_reserve(&ring, sizeof(*event), 0);
    if (!event)
        return false;
    event->type = type;
    event->tid = task->pid;
    event->time_ns = entry_ns;
    event->duration_ns = duration_ns;
    event->key = launch->key;
    event->shape = launch->shape;
    bpf_get_current_comm(event->comm, sizeof(event->comm));
    bpf_ringbuf_submit(event, ring_flags(sizeof(*event)));
    return true;
}

static __attribute__((noinline)) struct launch_stats* new_row(struct task_struct* task, const struct launch_key* key)
{
    struct launch_stats zero = {};
    introduce(&key->image, per_cgroup ? key->cgroups : cgroups_of(task));
    bpf_map_update_elem(&launches, key, &zero, BPF_NOEXIST);
    return bpf_map_lookup_elem(&launches, key);
}

INLINE void record(struct task_struct* task, const struct launch* launch, u64 entry_ns, u64 duration_ns)
{
    if (emit_events) {
        introduce(&launch->key.image, launch->key.cgroups); /* per_cgroup, in lines */
        if (!send(RECORD_LAUNCH, task, launch, entry_ns, duration_ns))
            lose(LOSS_EVENT, 1);
        return;
    }
    struct launch_stats* stats = bpf_map_lookup_elem(&launches, &launch->key);
    if (!stats)
        stats = new_row(task, &launch->key);
    if (!stats) {
        /* The table is full: this call goes to the front end by itself, which has more room. */
        if (!send(RECORD_SPILL, task, launch, entry_ns, duration_ns))
            lose(LOSS_ROW, 1);
        return;
    }
    add(&stats->count, 1);
    stats->last = bpf_jiffies64();
    stats->shape = launch->shape;
    if (measure_latency) {
        add(&stats->total_ns, duration_ns);
        if (duration_ns > stats->max_ns)
            stats->max_ns = duration_ns;
    }
}

/* A 64-bit division takes as long as the rest of this. */
INLINE u16 duration_bucket(u64 ns)
{
    return histogram_bucket(duration_unit_ns == 1 ? ns : ns / duration_unit_ns);
}

INLINE u16 product_bucket(u64 x, u64 y, u64 z)
{
    return histogram_bucket(x * y * z);
}

INLINE void read_shape(const volatile struct probe_row* row, const struct call_words* words, struct launch* launch)
{
    struct launch_shape* shape = &launch->shape;
    for (int i = 0; i < 3; i++) {
        shape->grid[i] = argument(row, words, ARG_GRID_X + i);
        shape->block[i] = argument(row, words, ARG_BLOCK_X + i);
    }
    shape->smem = argument(row, words, ARG_SMEM);
    if (row->kind == KIND_LAUNCH_LEGACY) {
        struct handle_key key = {.image = launch->key.image, .handle = argument(row, words, ARG_FUNC)};
        struct legacy_shape* legacy = bpf_map_lookup_elem(&legacy_shapes, &key);
        /* cuLaunch() takes no grid at all: 1 x 1. */
        for (int i = 0; i < 3; i++)
            shape->grid[i] = shape->grid[i] ?: 1;
        if (legacy) {
            for (int i = 0; i < 3; i++)
                shape->block[i] = legacy->block[i];
            shape->smem = legacy->smem;
        }
    }
    if (!per_shape)
        return;
    launch->key.blocks = product_bucket(shape->grid[0], shape->grid[1], shape->grid[2]);
    /* A legacy function shaped before attach has an unknown block, not an empty one. */
    if (shape->block[0])
        launch->key.threads = product_bucket(shape->block[0], shape->block[1], shape->block[2]);
}

INLINE void read_launch(struct pt_regs* ctx, const volatile struct probe_row* row, u64 block, struct launch* launch)
{
    struct call_words words;
    /* Without shapes and streams, all that counts is in registers, but for the functions of a list. */
    bool need_block = per_shape || per_stream || emit_events || captures_begun || row->kind == KIND_LAUNCH_LIST;
    bool readable = true;
    if (need_block)
        readable = read_words(ctx, row, block, &words);
    else
        read_registers(ctx, &words);
    u64 stream = stream_argument(row, argument(row, &words, ARG_STREAM));
    u32 kind = row->kind;
    launch->key.kind = kind == KIND_LAUNCH_LIST || kind == KIND_LAUNCH_LEGACY ? KIND_LAUNCH : kind;
    if (per_kernel)
        launch->key.func = argument(row, &words, ARG_FUNC);
    if (per_stream)
        launch->key.stream = stream;
    launch->key.recorded = under_capture(&launch->key.image, stream);
    if (!readable)
        lose(LOSS_ARGUMENTS, 1);
    else if (need_block && launch->key.kind == KIND_LAUNCH)
        read_shape(row, &words, launch);
}

INLINE void read_stack(struct pt_regs* ctx, struct launch_key* key)
{
    /* Frame pointers lead to the caller's caller: at the entry of a function its own frame does not exist yet. */
    if (bpf_probe_read_user(&key->caller, sizeof(key->caller), (void*)ctx->sp))
        key->caller = 0;
    key->stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
    if (key->stack < 0)
        lose(LOSS_STACK, 1);
}

INLINE u64 gap_since_last(struct task_struct* task, u64 now)
{
    struct thread_state* thread = thread_state_create(task);
    if (!thread) {
        lose(LOSS_START, 1);
        return 0;
    }
    u64 last = thread->last_launch_ns;
    thread->last_launch_ns = now;
    return last && now > last ? now - last : 0;
}

/* True where the call is the inner half of a launch that is counted at the runtime. */
INLINE bool counted_at_runtime(struct pt_regs* ctx, const volatile struct probe_row* row, struct task_struct* task,
                               const struct image* image)
{
    if (!count_runtime && !naming)
        return false;
    struct thread_state* thread = thread_state(task);
    struct runtime_call* call = thread ? inside_runtime(ctx, task, thread) : 0;
    if (!call)
        return false;
    call->launches--;
    /* A multi-device launch has a list of functions, and none of them in a register. */
    if (row->kind == KIND_LAUNCH && call->func)
        correlate(image, register_argument(ctx, row, ARG_FUNC), call->func);
    return count_runtime;
}

INLINE u32 launches_of(struct pt_regs* ctx, const volatile struct probe_row* row)
{
    return row->kind == KIND_LAUNCH_LIST ? (u32)register_argument(ctx, row, ARG_COUNT) : 1;
}

INLINE void mark_runtime(struct pt_regs* ctx, const volatile struct probe_row* row, struct task_struct* task)
{
    struct thread_state* thread = thread_state_create(task);
    if (thread)
        runtime_enter(ctx, thread, register_argument(ctx, row, ARG_FUNC), launches_of(ctx, row));
    else
        lose(LOSS_START, 1);
}

#define LIST_MAX 32 /* devices in one multi-device launch */

struct list_walk {
    struct pt_regs* ctx;
    struct task_struct* task;
    struct launch launch;
    u32 row;
    u64 list;
    u64 entry_ns;
    u64 duration_ns;
};

static long record_element(u32 index, struct list_walk* walk)
{
    const volatile struct probe_row* row = probe_row(walk->row);
    read_launch(walk->ctx, row, walk->list + index * row->block_words * 8u, &walk->launch);
    record(walk->task, &walk->launch, walk->entry_ns, walk->duration_ns);
    return 0;
}

/* Counts the kernels of a list, each with the result and the duration of the one call. bpf_loop (5.17, e6f2dd0f8067)
 * keeps the verifier from walking through all of it once per element, which takes seconds. */
INLINE void record_list(struct pt_regs* ctx, struct task_struct* task, const struct open_launch* open, u64 entry_ns,
                        u64 duration_ns)
{
    struct list_walk walk = {.ctx = ctx,
                             .task = task,
                             .launch = open->launch,
                             .row = open->row,
                             .list = open->list,
                             .entry_ns = entry_ns,
                             .duration_ns = duration_ns};
    u32 count = open->count < LIST_MAX ? open->count : LIST_MAX;
    if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))
        bpf_loop(count, record_element, &walk, 0);
    else
        count = 0;
    if (count < open->count)
        lose(LOSS_ROW, open->count - count);
}

INLINE int launch_entry_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!wanted(task))
        return 1;
    u32 number = row_number(ctx);
    if (!number)
        return 1;
    const volatile struct probe_row* row = probe_row(number);

    struct open_launch open = {.row = number};
    struct launch_key* key = &open.launch.key;
    key->image = image_of(task);
    if (row->layer == LAYER_RUNTIME)
        mark_runtime(ctx, row, task);
    else if (counted_at_runtime(ctx, row, task, &key->image))
        return 1;

    key->layer = row->layer;
    key->blocks = key->threads = key->duration = BUCKET_NONE;
    key->stack = -1;
    key->device = DEVICE_UNKNOWN;
    if (per_thread)
        key->tid = task->pid;
    if (per_cgroup)
        key->cgroups = cgroups_of(task);
    if (per_stack)
        read_stack(ctx, key);
    if (per_device) {
        struct thread_state* thread = thread_state(task);
        key->device = thread ? (u8)(thread->device - 1) : DEVICE_UNKNOWN;
    }

    u64 now = emit_events || measure_gap || measure_latency ? bpf_ktime_get_ns() : 0;
    if (measure_gap) {
        u64 gap = gap_since_last(task, now);
        if (!gap)
            return 1;
        key->duration = duration_bucket(gap);
    }

    bool list = row->kind == KIND_LAUNCH_LIST;
    u64 block = block_address(ctx, row);
    if (list) {
        open.list = block;
        open.count = launches_of(ctx, row);
    } else {
        read_launch(ctx, row, block, &open.launch);
    }
    if (!need_return) {
        if (list)
            record_list(ctx, task, &open, now, 0);
        else
            record(task, &open.launch, now, 0);
        return 1;
    }
    struct thread_state* thread = thread_state_create(task);
    struct open_call* call = thread ? open_call(ctx, thread) : 0;
    if (!call) {
        lose(LOSS_START, 1);
        return 1;
    }
    call->entry_ns = now;
    __builtin_memcpy(call->word, &open, sizeof(open));
    return 0;
}

INLINE int launch_return_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!wanted(task))
        return 0;
    struct thread_state* thread = thread_state(task);
    struct open_call* call = thread ? close_call(ctx, thread) : 0;
    if (!call) {
        /* Inner halves of runtime launches were left out at entry, on purpose. */
        if (!count_runtime)
            lose(LOSS_END, 1);
        return 0;
    }
    runtime_leave(ctx, thread);
    struct open_launch open;
    __builtin_memcpy(&open, call->word, sizeof(open));
    open.launch.key.result = (s32)ctx->ax;
    if (only_failed && !open.launch.key.result)
        return 0;
    u64 entry_ns = call->entry_ns, duration = 0;
    if (measure_latency) {
        u64 now = bpf_ktime_get_ns();
        duration = now > entry_ns ? now - entry_ns : 0;
        open.launch.key.duration = duration_bucket(duration);
    }
    const volatile struct probe_row* row = probe_row(open.row);
    if (row->kind == KIND_LAUNCH_LIST)
        record_list(ctx, task, &open, entry_ns, duration);
    else
        record(task, &open.launch, entry_ns, duration);
    return 0;
}

CALL_PROGRAMS(launch, launch_entry_body, launch_return_body)

/* Runtime launches while only the driver's are counted: held just long enough to learn names. */
INLINE int mark_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!wanted(task))
        return 1;
    u32 number = row_number(ctx);
    if (number)
        mark_runtime(ctx, probe_row(number), task);
    return 1;
}

GUARDED_PROGRAM(mark_entry, mark_body)
