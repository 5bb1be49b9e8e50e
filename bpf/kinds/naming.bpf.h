/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Kernels that the runtime launches: which driver's handle is which of its own, whose names are known otherwise. */
#ifndef GPUSNOOP_NAMING_BPF_H
#define GPUSNOOP_NAMING_BPF_H

#include "base/wanted.bpf.h"
#include "kinds/names.bpf.h"

bool naming = false; /* runtime launches are marked now, so that handles get their names */

INLINE u32 launches_of(struct pt_regs* ctx, const volatile struct probe_row* row)
{
    return row->kind == KIND_LAUNCH_LIST ? (u32)register_argument(ctx, row, ARG_COUNT) : 1;
}

INLINE void mark_launch(struct pt_regs* ctx, const volatile struct probe_row* row, struct task_struct* task)
{
    mark_runtime(ctx, task, register_argument(ctx, row, ARG_FUNC), launches_of(ctx, row));
}

/* A launch of the driver's is one of those that are expected inside of this call. */
INLINE void name_launch(struct pt_regs* ctx, const volatile struct probe_row* row, const struct image* image,
                        struct runtime_call* call)
{
    call->calls--;
    /* A multi-device launch has a list of functions, and none of them in a register. */
    if (row->kind == KIND_LAUNCH && call->func)
        correlate(image, register_argument(ctx, row, ARG_FUNC), call->func);
}

/* Runtime launches while only the driver's are counted: held just long enough to learn names. */
INLINE int mark_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = wanted_row(ctx, task);
    if (number)
        mark_launch(ctx, probe_row(number), task);
    return 1;
}

ENTRY_PROGRAM(mark_entry, mark_body)

#endif
