/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Programs with a deep stack. Kernels from 6.13 on run them on a private per-CPU stack, unless the program has a
 * feature that prevents it (program_stack_test.cpp). */
#include "base/common.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

INLINE void use_stack(struct pt_regs* ctx)
{
    u64 words[32];
    bpf_probe_read_user(words, sizeof(words), (void*)PT_REGS_PARM1(ctx));
    lose(LOSS_EVENT, words[PT_REGS_PARM2(ctx) & 31]);
}

SEC("?uprobe")
int without_tail_call(struct pt_regs* ctx)
{
    use_stack(ctx);
    return 0;
}

SEC("?uprobe")
int with_tail_call(struct pt_regs* ctx)
{
    program_begin(ctx);
    use_stack(ctx);
    program_end();
    return 0;
}
