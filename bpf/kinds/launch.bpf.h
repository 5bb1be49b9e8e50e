/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Kernel launches. BPF programs count them in rows of a table, and send one record per launch only for -e. */
#ifndef GPUSNOOP_LAUNCH_BPF_H
#define GPUSNOOP_LAUNCH_BPF_H

#include "kinds/context.bpf.h"
#include "kinds/graph.bpf.h"
#include "kinds/state.bpf.h"

const volatile bool per_kernel = true;
const volatile bool per_shape = true;
/* If true, grids of fewer than FEW_BLOCKS blocks are counted in separate rows. Used only if per_shape is false. */
const volatile bool distinguish_few_blocks = false;
const volatile bool measure_gap = false;
const volatile bool follow_graphs = false; /* count the kernels that a graph launch starts */

bool naming = false; /* set by the front end while it tracks runtime launches to find the names of driver handles */

const volatile __u32 often_launched = 0; /* number of the row whose launches the program `often` handles */

INLINE bool same_shape(const struct launch_shape* a, const struct launch_shape* b)
{
    u32 difference = a->smem ^ b->smem;
    for (int i = 0; i < 3; i++)
        difference |= (a->grid[i] ^ b->grid[i]) | (a->block[i] ^ b->block[i]);
    return !difference;
}

INLINE void add_launch_to(struct call_stats* stats, const struct call* launch)
{
    if (launch->key.kind == KIND_GRAPH_LAUNCH) {
        add_graph_to(stats, launch);
        return;
    }
    stats->v[CALL_LAST] = bpf_jiffies64();
    struct launch_shape* shape = (struct launch_shape*)&stats->v[LAUNCH_SHAPE];
    if (same_shape(shape, &launch->shape))
        return;
    guard_begin();
    *shape = launch->shape;
    guard_end();
}

INLINE int record_launch_in_front(struct call* launch, u64 entry_ns, u64 duration_ns)
{
    struct call_stats* stats = count_argument_often(launch, 1, entry_ns, duration_ns);
    if (stats)
        add_launch_to(stats, launch);
    return 0;
}

VERIFIED_ONCE int record_guarded_launch(struct call* launch, u64 entry_ns, u64 duration_ns)
{
    return record_launch_in_front(launch, entry_ns, duration_ns);
}

INLINE void record_launch(struct call* launch, bool often, u64 entry_ns, u64 duration_ns)
{
    if (GUARDED) {
        if (often)
            record_launch_in_front(launch, entry_ns, duration_ns);
        else
            record_guarded_launch(launch, entry_ns, duration_ns);
        return;
    }
    struct call_stats* stats = count_call(bpf_get_current_task_btf(), launch, 1, entry_ns, duration_ns);
    if (stats)
        add_launch_to(stats, launch);
}

INLINE u16 product_bucket(u64 x, u64 y, u64 z)
{
    return histogram_bucket(x * y * z);
}

/* Returns the number of blocks, rounded up, because the last block may be partly filled. */
INLINE u32 blocks_of(u32 items, u32 block)
{
    block = block ?: 1;
    return ((u64)items + block - 1) / block;
}

INLINE void read_shape(const volatile struct probe_row* row, const struct call_words* words, struct call* launch)
{
    struct launch_shape* shape = &launch->shape;
    for (int i = 0; i < 3; i++) {
        shape->grid[i] = argument(row, words, ARG_GRID_X + i);
        shape->block[i] = argument(row, words, ARG_BLOCK_X + i);
    }
    shape->smem = argument(row, words, ARG_SMEM);
    if (row->kind == KIND_LAUNCH_LEGACY) {
        struct handle_number key = {.image = launch->key.image, .number = argument(row, words, ARG_FUNC)};
        struct legacy_shape* legacy = bpf_map_lookup_elem(&legacy_shapes, &key);
        /* cuLaunch() has no grid arguments. It launches a grid of one block. */
        for (int i = 0; i < 3; i++)
            shape->grid[i] = shape->grid[i] ?: 1;
        if (legacy) {
            for (int i = 0; i < 3; i++)
                shape->block[i] = legacy->block[i];
            shape->smem = legacy->smem;
        }
    } else if (row->kind == KIND_LAUNCH_ITEMS) {
        for (int i = 0; i < 3; i++)
            shape->grid[i] = blocks_of(shape->grid[i], shape->block[i]);
    }
    if (!per_shape)
        return;
    launch->key.launch.blocks = product_bucket(shape->grid[0], shape->grid[1], shape->grid[2]);
    /* The block size is 0, which means unknown, if it was set before attach by a separate legacy call. */
    if (shape->block[0])
        launch->key.launch.threads = product_bucket(shape->block[0], shape->block[1], shape->block[2]);
}

INLINE u64 few_or_many(u64 blocks)
{
    if (!blocks)
        return BUCKET_NONE;
    return blocks < FEW_BLOCKS ? histogram_bucket(1) : histogram_bucket(FEW_BLOCKS);
}

/* Returns the bucket for few or many blocks. Uses only arguments that the program has already read. If a dimension of
 * the grid was not read, it is 0. The number of blocks is then 0, which means unknown, because a real grid has at least
 * one block. */
VERIFIED_ONCE u64 few_or_many_blocks(u32 number, struct call_words* words)
{
    if (!words)
        return BUCKET_NONE;
    const volatile struct probe_row* row = probe_row(number);
    return few_or_many(argument(row, words, ARG_GRID_X) * argument(row, words, ARG_GRID_Y) *
                       argument(row, words, ARG_GRID_Z));
}

/* Flags launches under capture. With follow_graphs, also adds launches under capture to the nodes of the graph that is
 * being captured. For a graph launch, follow_graphs also fills in the number of kernels from the graph's nodes. */
VERIFIED_ONCE int follow_launch(u64 func, u64 stream, struct call* launch)
{
    if (!launch)
        return 0;
    const struct image* image = &launch->key.image;
    struct capture* capture = capture_of(image, stream);
    u32 kind = launch->key.kind;
    if (capture)
        launch->key.flags = CALL_RECORDED;
    if (!follow_graphs)
        return 0;
    if (kind == KIND_GRAPH_LAUNCH) {
        struct graph_exec* exec = exec_of(image, func);
        if (exec)
            fill_from_nodes(launch, &exec->nodes);
        else
            launch->graph.unknown = 1;
        if (capture && exec)
            add_nodes(&capture->nodes, &exec->nodes);
    } else if (capture && kind == KIND_LAUNCH) {
        add_node(capture, NODE_KERNEL, 1);
    }
    return 0;
}

INLINE void read_launch(struct pt_regs* ctx, u32 number, u64 block, struct call* launch)
{
    const volatile struct probe_row* row = probe_row(number);
    struct call_words words;
    /* If shapes and streams are not needed, all needed arguments are in registers. Launch lists are an exception,
     * because their functions are in memory. */
    bool need_block = per_shape || per_stream || emit_events || captures_open || row->kind > KIND_LAUNCH_LEGACY;
    u64 unreadable = 0;
    if (need_block)
        unreadable = read_words(ctx, row, block, &words);
    else
        read_registers(ctx, &words);
    u64 stream = stream_argument(row, argument(row, &words, ARG_STREAM));
    launch->key.kind = row->counted_as;
    u64 func = argument(row, &words, ARG_FUNC);
    if (per_kernel)
        launch->key.subject = func;
    if (per_stream)
        launch->key.stream = stream;
    launch->key.flags = 0;
    if (captures_open || (follow_graphs && launch->key.kind == KIND_GRAPH_LAUNCH))
        follow_launch(func, stream, launch);
    FORGET(launch->key.flags);
    FORGET(launch->key.kind);
    if (follow_graphs) {
        FORGET(launch->graph.kernels);
        FORGET(launch->graph.unknown);
    }
    if (opaque(unreadable))
        lose(LOSS_ARGUMENTS, 1);
    else if (need_block && launch->key.kind == KIND_LAUNCH)
        read_shape(row, &words, launch);
    if (distinguish_few_blocks && row->kind == KIND_LAUNCH_ITEMS)
        launch->key.launch.blocks =
            few_or_many((u64)launch->shape.grid[0] * launch->shape.grid[1] * launch->shape.grid[2]);
    else if (distinguish_few_blocks && launch->key.kind == KIND_LAUNCH)
        launch->key.launch.blocks = few_or_many_blocks(number, &words);
}

OWN_FRAME u64 gap_since_last(struct task_struct* task, const struct image* image, u64 now)
{
    struct thread_state* thread = thread_state_create(task);
    if (!thread) {
        lose(LOSS_START, 1);
        return 0;
    }
    begin_image(thread, image);
    u64 last = thread->last_launch_ns;
    thread->last_launch_ns = now;
    return last && now > last ? now - last : 0;
}

/* True if the call is a driver call inside a runtime launch that is counted instead. */
INLINE bool counted_at_runtime(struct pt_regs* ctx, const volatile struct probe_row* row, struct task_struct* task,
                               const struct image* image)
{
    if (!count_runtime && !naming)
        return false;
    struct runtime_call* call = runtime_call_around(ctx, task);
    if (!call)
        return false;
    name_launch(ctx, row, image, call);
    return count_runtime;
}

OWN_FRAME int read_launch_own_frame(struct pt_regs* ctx, u32 number, u64 block, struct call* launch)
{
    if (ctx && launch)
        read_launch(ctx, number, block, launch);
    return 0;
}

#define LIST_MAX 32 /* maximum number of kernels in a multi-device launch, which launches one kernel per device */

/* `call` points into thread_state, not to the stack, for the reason given at HAS_LOOPS. */
struct list_walk {
    struct pt_regs* ctx;
    const struct ended_call* call;
};

static long record_listed(u32 index, struct list_walk* walk)
{
    struct kept_call* kept = walk->call->kept;
    const volatile struct probe_row* row = probe_row(kept->row);
    read_launch_own_frame(walk->ctx, kept->row, kept->list + index * row->block_words * 8u, &kept->call);
    record_launch(&kept->call, false, walk->call->entry_ns, walk->call->duration_ns);
    return 0;
}

/* Counts each kernel of a launch list, with the result and duration of the whole call. */
INLINE void record_list(struct pt_regs* ctx, const struct ended_call* call)
{
    struct list_walk walk = {.ctx = ctx, .call = call};
    u32 listed = call->kept->count;
    u32 count = listed < LIST_MAX ? listed : LIST_MAX;
    if (HAS_LOOPS)
        bpf_loop(count, record_listed, &walk, 0);
    else
        count = 0;
    if (count < listed)
        lose(LOSS_ROW, listed - count);
}

/* Like record_list(), but called at the call's entry, for tools that do not probe the return. */
INLINE void record_list_now(struct pt_regs* ctx, struct task_struct* task, const struct kept_call* kept, u64 now)
{
    struct open_call* open = keep_call_in(ctx, thread_state_create(task), PART_COUNT, kept, now);
    if (!open)
        return;
    struct ended_call call = {.kept = (struct kept_call*)open->word, .entry_ns = now};
    record_list(ctx, &call);
    open->sp_part = 0;
}

OWN_FRAME int counted_at_runtime_own_frame(struct pt_regs* ctx, const volatile struct probe_row* row,
                                           struct task_struct* task, struct image* image)
{
    return counted_at_runtime(ctx, row, task, image);
}

INLINE int launch_begins(struct pt_regs* ctx, bool often)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = traced_row_of(ctx, task, often ? often_launched : 0);
    if (!number)
        return 1;
    const volatile struct probe_row* row = probe_row(number);

    struct kept_call kept = {.row = number};
    struct call_key* key = &kept.call.key;
    key->image = image_of(task);
    if (row->layer == LAYER_RUNTIME)
        mark_launch(ctx, row, task);
    else if (often ? counted_at_runtime(ctx, row, task, &key->image)
                   : counted_at_runtime_own_frame(ctx, row, task, &key->image))
        return 1;
    begin_key(ctx, task, row, number, SAMPLED_LAUNCHES, key);
    key->launch.blocks = key->launch.threads = BUCKET_NONE;

    u64 now = needs_entry_time() || measure_gap ? bpf_ktime_get_ns() : 0;
    if (measure_gap) {
        u64 gap = gap_since_last(task, &key->image, now);
        if (!gap)
            return 1;
        key->duration = duration_bucket(gap);
    }

    bool list = !often && row->kind == KIND_LAUNCH_LIST;
    u64 block = block_address(ctx, row);
    if (list) {
        kept.list = block;
        kept.count = launches_of(ctx, row);
    } else if (often) {
        read_launch(ctx, number, block, &kept.call);
    } else {
        read_launch_own_frame(ctx, number, block, &kept.call);
    }
    if (need_return)
        return keep_call(ctx, task, &kept, now) ? 0 : 1;
    if (list)
        record_list_now(ctx, task, &kept, now);
    else
        record_launch(&kept.call, often, now, 0);
    return 1;
}

INLINE int launch_returns(struct pt_regs* ctx, bool often)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct ended_call ended;
    if (!end_call(ctx, task, &ended))
        return 0;
    if (!often && probe_row(ended.kept->row)->kind == KIND_LAUNCH_LIST)
        record_list(ctx, &ended);
    else
        record_launch(&ended.kept->call, often, ended.entry_ns, ended.duration_ns);
    return 0;
}

CALL_PROGRAMS(launch, launch_begins, launch_returns, false)
CALL_PROGRAMS(often, launch_begins, launch_returns, true)
ENTRY_PROGRAM(mark_entry, mark_body)

#endif
