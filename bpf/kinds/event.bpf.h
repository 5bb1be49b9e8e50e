/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Streams join captures by events. */
#ifndef GPUSNOOP_EVENT_BPF_H
#define GPUSNOOP_EVENT_BPF_H

#include "base/wanted.bpf.h"
#include "kinds/stream.bpf.h"

INLINE int event_body(struct pt_regs* ctx)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 number = captures_open ? wanted_row_of_process(ctx, task) : 0;
    if (!number)
        return 1;
    const volatile struct probe_row* row = probe_row(number);
    struct image image = image_of(task);
    u64 stream = stream_argument(row, register_argument(ctx, row, ARG_STREAM));
    u64 event = register_argument(ctx, row, ARG_HANDLE);
    if (row->kind == KIND_EVENT_GONE)
        event_destroyed(&image, event);
    else if (row->kind == KIND_EVENT_RECORD)
        event_recorded(&image, event, stream);
    else
        event_waited_for(&image, event, stream);
    return 1;
}

ENTRY_PROGRAM(event_entry, event_body)

#endif
