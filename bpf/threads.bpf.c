/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* User registers of all threads of selected processes, as saved by the kernel. Reading them neither stops nor changes
 * the threads. */
#include "shared/kernel.h"

#include "base/machine.bpf.h"
#include "base/maps.bpf.h"
#include "shared/stack.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define WANTED_MAX 4096

/* Ids of the selected processes. */
HASH_MAP(wanted, WANTED_MAX, u32, u32);

SEC("iter/task")
int registers(struct bpf_iter__task* ctx)
{
    struct task_struct* task = ctx->task;
    if (!task)
        return 0;
    u32 process = task->tgid;
    if (!bpf_map_lookup_elem(&wanted, &process))
        return 0;
    struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task); /* since 5.15 (dd6e10fbd9fb) */
    struct thread_registers found = {
        .process = process,
        .thread = task->pid,
        .start_ns = task->start_boottime,
        .ip = PT_REGS_IP(regs),
        .sp = PT_REGS_SP(regs),
        .kept = {EACH_KEPT_REGISTER(REGISTER_VALUE, regs)},
    };
    struct return_instance* replaced = task->utask ? task->utask->return_instances : 0;
    for (int i = 0; i < REPLACED_RETURNS && replaced; i++) {
        found.replaced[i] = (struct replaced_return){.slot = replaced->stack, .address = replaced->orig_ret_vaddr};
        replaced = replaced->next;
    }
    __builtin_memcpy(found.comm, task->comm, sizeof(found.comm));
    bpf_seq_write(ctx->meta->seq, &found, sizeof(found));
    return 0;
}
