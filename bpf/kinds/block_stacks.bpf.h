/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Where threads are that block: taken as they leave their CPU, counted when they have one again. */
#ifndef GPUSNOOP_BLOCK_STACKS_BPF_H
#define GPUSNOOP_BLOCK_STACKS_BPF_H

#include "base/python.bpf.h"
#include "base/window.bpf.h"
#include "kinds/thread_time.bpf.h"
#include "shared/block.h"

const volatile bool stacks_of_blocks = false;
const volatile bool count_blocks = false; /* by these, and not only told in lines */

/* 1 entry where they are not asked for. */
struct {
    __uint(type, BPF_MAP_TYPE_STACK_TRACE);
    __uint(max_entries, 16384);
    __uint(key_size, sizeof(u32));
    __uint(value_size, BLOCK_FRAMES * sizeof(u64));
} block_stacks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH); /* of memory that is there, as in wakers.bpf.h */
    __uint(max_entries, 16384);
    __type(key, struct block_key);
    __type(value, struct block_count);
} block_counts SEC(".maps");

/* The current thread's, which leaves its CPU. */
INLINE void take_stacks(void* ctx, struct thread_time* time)
{
    struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(bpf_get_current_task_btf());
    time->user_stack = -1;
    if (follow_python)
        time->user_stack = read_python_stack(PT_REGS_SP(regs), PT_REGS_IP(regs), STACK_NOT_READ, COPIED_ANYWHERE);
    if (time->user_stack < 0)
        time->user_stack = window_stack_of(regs, COPIED_ANYWHERE);
    if (time->user_stack < 0)
        time->user_stack = bpf_get_stackid(ctx, &block_stacks, BPF_F_USER_STACK);
    time->kernel_stack = bpf_get_stackid(ctx, &block_stacks, 0);
    if (time->user_stack < 0 || time->kernel_stack < 0)
        lose(LOSS_STACK, 1);
}

INLINE void count_block(const struct thread_state* thread, const struct thread_time* time, u32 part, u64 ns)
{
    static const struct block_count none = {};
    struct block_key key = {
        .place = thread->place - 1, .part = part, .user = time->user_stack, .kernel = time->kernel_stack};
    struct block_count* count = bpf_map_lookup_elem(&block_counts, &key);
    if (!count) {
        bpf_map_update_elem(&block_counts, &key, &none, BPF_NOEXIST);
        count = bpf_map_lookup_elem(&block_counts, &key);
    }
    if (!count) {
        lose(LOSS_BLOCK, 1);
        return;
    }
    count->sum += ns; /* only its thread's CPU does so */
    count->times++;
}

#endif
