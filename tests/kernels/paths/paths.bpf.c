/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Counts the calls and errors that each kind of program sees. */
#include "shared/kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "paths.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct path_count counts[PATHS];

static __always_inline int add(enum hook hook, u64 value, bool failed)
{
    __sync_fetch_and_add(&counts[hook].count, 1);
    __sync_fetch_and_add(&counts[hook].sum, value);
    if (failed)
        __sync_fetch_and_add(&counts[hook].failed, 1);
    return 0;
}

SEC("kprobe")
int ioctl_entry(struct pt_regs* ctx)
{
    return add(PATH_KPROBE, (u32)PT_REGS_PARM2(ctx), false);
}

SEC("kretprobe")
int ioctl_return(struct pt_regs* ctx)
{
    return add(PATH_KRETPROBE, 0, (long)PT_REGS_RC(ctx) < 0);
}

SEC("fentry")
int ioctl_fentry(u64* ctx)
{
    return add(PATH_FENTRY, (u32)ctx[1], false);
}

SEC("fexit")
int ioctl_fexit(u64* ctx)
{
    return add(PATH_FEXIT, (u32)ctx[1], (long)ctx[3] < 0);
}

SEC("kprobe")
int xid_entry(struct pt_regs* ctx)
{
    return add(PATH_XID_KPROBE, (u32)PT_REGS_PARM2(ctx), false);
}

/* Record of the tracepoint, as its "format" file in tracefs describes it. `common`: the fields that all events have. */
struct xid_event {
    u64 common;
    u32 device;
    u32 number;
    u32 message;
};

SEC("tracepoint")
int xid_event(struct xid_event* ctx)
{
    return add(PATH_XID_TRACEPOINT, ctx->number, false);
}
