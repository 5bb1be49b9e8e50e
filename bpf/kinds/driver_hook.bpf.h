/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Where calls into GPU drivers are seen: in the drivers' own functions, or in the system calls that lead there. */
#ifndef GPUSNOOP_DRIVER_HOOK_BPF_H
#define GPUSNOOP_DRIVER_HOOK_BPF_H

#include "base/descriptor.bpf.h"
#include "kinds/driver.bpf.h"

/* --- the drivers' functions -------------------------------------------------------------------------------------- */

/* ioctl(file, request, argument), mmap(file, area); open(inode, file), release(inode, file). */
INLINE void begin_function(void* ctx, u8 entry, u64 first, u64 request, u64 argument)
{
    struct inode* inode = (struct inode*)first;
    if (entry == ENTRY_IOCTL || entry == ENTRY_MMAP)
        inode = READ((struct file*)first, f_inode);
    u32 device = READ(inode, i_rdev);
    begin_driver_call(ctx, node_of(device) & ~NODE_BY_FUNCTION, device & MINOR_ANY, entry, (u32)request, argument);
}

/* The cookie is the enum driver_entry. */
SEC("kprobe")
int function_entry(struct pt_regs* ctx)
{
    guard_begin();
    u8 entry = bpf_get_attach_cookie(ctx);
    begin_function(ctx, entry, PT_REGS_PARM1(ctx), entry == ENTRY_IOCTL ? PT_REGS_PARM2(ctx) : 0, PT_REGS_PARM3(ctx));
    guard_end();
    return 0;
}

SEC("kretprobe")
int function_return(struct pt_regs* ctx)
{
    guard_begin();
    /* All but ioctl return an int, which leaves half of the register as it is. */
    u8 entry = bpf_get_attach_cookie(ctx);
    end_driver_call(entry == ENTRY_IOCTL ? (s64)PT_REGS_RC(ctx) : (s32)PT_REGS_RC(ctx));
    guard_end();
    return 0;
}

/* The kernel checks a program of this kind against the one function that it is for. */
#define FUNCTION(NAME, ENTRY, SECOND, THIRD, RETURNED)                                                                 \
    SEC("fentry")                                                                                                      \
    int NAME##_entry(u64* ctx)                                                                                         \
    {                                                                                                                  \
        guard_begin();                                                                                                 \
        begin_function(ctx, ENTRY, ctx[0], SECOND, THIRD);                                                             \
        guard_end();                                                                                                   \
        return 0;                                                                                                      \
    }                                                                                                                  \
    SEC("fexit")                                                                                                       \
    int NAME##_return(u64* ctx)                                                                                        \
    {                                                                                                                  \
        guard_begin();                                                                                                 \
        end_driver_call((s64)RETURNED);                                                                                \
        guard_end();                                                                                                   \
        return 0;                                                                                                      \
    }

#define DRIVER(NAME)                                                                                                   \
    FUNCTION(NAME##_ioctl, ENTRY_IOCTL, ctx[1], ctx[2], ctx[3])                                                        \
    FUNCTION(NAME##_open, ENTRY_OPEN, 0, 0, (s32)ctx[2])                                                               \
    FUNCTION(NAME##_close, ENTRY_CLOSE, 0, 0, (s32)ctx[2])                                                             \
    FUNCTION(NAME##_mmap, ENTRY_MMAP, 0, 0, (s32)ctx[2])

DRIVER(nvidia)
DRIVER(modeset)
DRIVER(caps)
DRIVER(uvm)
DRIVER(uvm_tools)
DRIVER(kfd)
DRIVER(amdgpu)

/* --- system calls, where the functions cannot be hooked ---------------------------------------------------------- */

/* Device number of what a descriptor of the calling process stands for; 0 for all but device nodes. */
INLINE u32 device_of(u64 descriptor)
{
    struct inode* inode = inode_of_descriptor(bpf_get_current_task_btf(), descriptor);
    bool is_character_device = inode && (READ(inode, i_mode) & MODE_TYPE) == MODE_CHARACTER_DEVICE;
    return is_character_device ? READ(inode, i_rdev) : 0;
}

INLINE bool begin_system_call(void* ctx, u64 descriptor, u8 entry, u32 request, u64 argument)
{
    u32 device = device_of(descriptor);
    u8 node = device ? node_of(device) : NODE_NONE;
    return !(node & NODE_BY_FUNCTION) && begin_driver_call(ctx, node, device & MINOR_ANY, entry, request, argument);
}

#define SYSTEM_CALL(NAME, BEGIN)                                                                                       \
    SEC("tracepoint")                                                                                                  \
    int NAME##_enter(struct trace_event_raw_sys_enter* ctx)                                                            \
    {                                                                                                                  \
        guard_begin();                                                                                                 \
        BEGIN;                                                                                                         \
        guard_end();                                                                                                   \
        return 0;                                                                                                      \
    }

SYSTEM_CALL(ioctl, begin_system_call(ctx, (u32)ctx->args[0], ENTRY_IOCTL, (u32)ctx->args[1], ctx->args[2]))
SYSTEM_CALL(close, begin_system_call(ctx, (u32)ctx->args[0], ENTRY_CLOSE, 0, 0))
SYSTEM_CALL(mmap, begin_system_call(ctx, (u32)ctx->args[4], ENTRY_MMAP, 0, 0))

/* Of all three. */
SEC("tracepoint")
int call_exit(struct trace_event_raw_sys_exit* ctx)
{
    guard_begin();
    end_driver_call(ctx->ret);
    guard_end();
    return 0;
}

/* What is opened is known when it is: attempts that fail are not seen here, and take no time. */
SEC("tracepoint")
int open_exit(struct trace_event_raw_sys_exit* ctx)
{
    guard_begin();
    if (ctx->ret >= 0 && begin_system_call(ctx, (u64)ctx->ret, ENTRY_OPEN, 0, 0))
        end_driver_call(0);
    guard_end();
    return 0;
}

/* --- errors of a GPU --------------------------------------------------------------------------------------------- */

/* Offsets in the record of the tracepoint nvidia:nvidia_dev_xid, from its format. */
const volatile __u32 xid_device_offset = 0;
const volatile __u32 xid_number_offset = 0;
const volatile __u32 xid_text_offset = 0;

/* A string of a tracepoint: its place in the record is in the record. */
INLINE void read_record_text(void* ctx, u32 at, char* text, u32 size)
{
    u32 location = kernel_word(ctx + at);
    kernel_text(text, size, ctx + (location & 0xffff));
}

INLINE struct xid_record* begin_xid(u32 number)
{
    struct xid_record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        lose(LOSS_EVENT, 1);
        return 0;
    }
    __builtin_memset(record, 0, sizeof(*record));
    record->type = RECORD_XID;
    record->xid = number;
    record->time_ns = bpf_ktime_get_ns();
    return record;
}

SEC("tracepoint")
int xid_event(void* ctx)
{
    guard_begin();
    struct xid_record* record = begin_xid(kernel_word(ctx + xid_number_offset));
    if (record) {
        read_record_text(ctx, xid_device_offset, record->device, sizeof(record->device));
        read_record_text(ctx, xid_text_offset, record->text, sizeof(record->text));
        bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
    }
    guard_end();
    return 0;
}

/* nv_report_error(struct pci_dev*, u32 number, const char* format, va_list) */
SEC("kprobe")
int xid_report(struct pt_regs* ctx)
{
    guard_begin();
    struct xid_record* record = begin_xid((u32)PT_REGS_PARM2(ctx));
    if (record) {
        const char* name = READ((struct pci_dev*)PT_REGS_PARM1(ctx), dev.kobj.name);
        kernel_text(record->device, sizeof(record->device), name);
        bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
    }
    guard_end();
    return 0;
}

#endif
