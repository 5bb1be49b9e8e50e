/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A thread's stack, copied for the front end, which finds the callers in it (src/stacks/). 240 ns, once for each id of
 * a stack, and once for each so many calls that have one: other callers may have got the same. */
#ifndef GPUSNOOP_STACK_COPY_BPF_H
#define GPUSNOOP_STACK_COPY_BPF_H

#include "base/process.bpf.h"
#include "shared/stack_copy.h"

/* What is left up to the end of a page, which a stack's end is, too: how much, or 0 where that is more than there is
 * room for, or cannot be read. */
INLINE u32 read_rest_of_page(void* to, u64 room, u64 sp)
{
    u64 rest = 4096 - (sp & 4095);
    barrier_var(rest);
    return rest > room || bpf_probe_read_user(to, rest, (void*)sp) ? 0 : rest;
}

/* As many bytes as there are, for a read that leaves the stack fails as a whole: fewer, or up to the end of a page. */
INLINE u32 copy_stack(u8* to, u64 sp)
{
    if (!bpf_probe_read_user(to, STACK_COPY_BYTES, (void*)sp))
        return STACK_COPY_BYTES;
    if (!bpf_probe_read_user(to, 4096, (void*)sp))
        return 4096;
    return read_rest_of_page(to, 4096, sp);
}

/* Whether it is a call's turn whose stack is known. */
INLINE bool is_copied_again(u32* calls)
{
    return !(++*calls & (COPIED_AGAIN_EACH - 1));
}

#define KEEP_REGISTER(NUMBER, VALUE) found->kept[NUMBER] = VALUE;

/* Of the thread. Verified once. */
__attribute__((noinline)) int send_stack_copy(int stack, u32 at)
{
    struct stack_copy* copy = bpf_ringbuf_reserve(&ring, sizeof(*copy) + STACK_COPY_BYTES, 0);
    if (!copy) {
        if (!(at & COPIED_AGAIN))
            lose(LOSS_STACK, 1);
        return 0;
    }
    struct task_struct* task = bpf_get_current_task_btf();
    struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task); /* 5.15 (dd6e10fbd9fb) */
    copy->type = RECORD_STACK_COPY;
    copy->stack = stack;
    copy->image = image_of(task);
    struct thread_registers* found = &copy->registers;
    found->process = task->tgid;
    found->thread = task->pid;
    found->start_ns = 0;
    found->ip = PT_REGS_IP(regs);
    found->sp = PT_REGS_SP(regs);
    EACH_KEPT_REGISTER(KEEP_REGISTER, regs)
    struct return_instance* replaced = READ(task, utask) ? READ(task, utask, return_instances) : 0;
    for (int i = 0; i < REPLACED_RETURNS; i++) {
        found->replaced[i] = (struct replaced_return){};
        if (!replaced)
            continue;
        found->replaced[i] =
            (struct replaced_return){.slot = READ(replaced, stack), .address = READ(replaced, orig_ret_vaddr)};
        replaced = READ(replaced, next);
    }
    copy->at = at;
    copy->bytes = copy_stack((u8*)(copy + 1), PT_REGS_SP(regs));
    bpf_ringbuf_submit(copy, ring_flags(sizeof(*copy) + STACK_COPY_BYTES));
    return 0;
}

#endif
