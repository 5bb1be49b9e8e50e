/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Driver calls that are parts of another driver call: a driver may forward to a second one (WSL, vGPU interposers), or
 * be written in terms of HIP (ZLUDA), by a call or by a jump. The outermost call counts, with its result and duration.
 */
#ifndef GPUSNOOP_NESTED_CALL_BPF_H
#define GPUSNOOP_NESTED_CALL_BPF_H

#include "base/exchange.bpf.h"

/* Drivers that share a process with another one: a bit for each file's number modulo 64. Set by the front end. While it
 * is 0, a call pays for one load and one branch. Not on arm64, where the check needs more stack than there is. */
__u64 forwarding_files = 0;

INLINE u32 driver_number(u64 cookie)
{
    return cookie >> COOKIE_WORD_SHIFT;
}

INLINE bool may_forward(u64 cookie)
{
    return cookie & COOKIE_OF_DRIVER && forwarding_files >> (driver_number(cookie) & 63) & 1;
}

static long note_file(struct task_struct* task, struct vm_area_struct* vma, u64* found)
{
    struct file* file = vma->vm_file;
    if (file)
        *found = opaque((u64)file->f_inode->i_sb->s_dev << 32 ^ file->f_inode->i_ino);
    return 0;
}

/* The file that is mapped at an address; 0 where there is none, or while another thread maps memory. */
INLINE u64 file_at(struct task_struct* task, u64 address)
{
    u64 found = 0;
    if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_find_vma))
        bpf_find_vma(task, address, note_file, &found, 0);
    return found;
}

/* The outer call, whose frame is still on the stack, runs around a call of this file that returns to `caller`. The
 * frame may be a remnant of a call that has returned: then the program calls another driver, from the file that made
 * the outer call. A driver that calls itself does so from its own file. */
INLINE bool is_around(struct task_struct* task, const struct outer_call* outer, u32 file, u64 caller, u64 ip)
{
    u64 from = file_at(task, caller);
    if (outer->file == file)
        return from && from == file_at(task, ip);
    return !from || from != file_at(task, outer->frame.return_address);
}

/* The outer call has jumped to a call of this file and kind: both have the same stack pointer and return address. A
 * return probe of the outer call has replaced the address by one that no new call has. Without a return probe, the
 * program's next call from the same place looks the same. So a jump must lead to another file and to a call of the same
 * kind, and only the first call there since the outer call's entry can be one. */
INLINE bool is_jump(struct task_struct* task, struct outer_call* outer, u32 file, u64 caller, u32 kind, u64 hook)
{
    if (outer->file == file)
        return false;
    if (outer->frame.return_address != caller)
        return in_trampoline(task, caller);
    if (outer->kind != kind)
        return false;
    if (outer->jumped_to != file)
        outer->jump_hooks = 0;
    outer->jumped_to = file;
    bool first = !(outer->jump_hooks & hook);
    outer->jump_hooks |= hook;
    return first;
}

/* Verified once. probe: its cookie, with the kind of call in place of the lower half. */
__attribute__((noinline)) int is_part_of_outer(u64 sp, u64 caller, u64 fp, u64 ip, u64 probe)
{
    barrier_var(fp); /* x86 has no use for it, and clang would leave it unset in callers */
    struct task_struct* task = bpf_get_current_task_btf();
    struct thread_state* thread = thread_state_create(task);
    if (!thread) {
        lose(LOSS_START, 1);
        return 0;
    }
    struct outer_call* outer = &thread->outer;
    u32 file = driver_number(probe), kind = probe;
    if (outer->frame.sp == sp
            ? is_jump(task, outer, file, caller, kind, hook_bit(probe))
            : outer->frame.sp && is_running(task, &outer->frame, sp, fp) && is_around(task, outer, file, caller, ip))
        return 1;
    *outer = (struct outer_call){.frame = {.sp = sp, .return_address = caller}, .file = file, .kind = kind};
    return 0;
}

/* Not inlined: rare, and it would cost every entry program stack. */
static __attribute__((noinline)) int is_nested_entry(struct pt_regs* ctx, u32 kind)
{
    u64 cookie = bpf_get_attach_cookie(ctx), caller = 0;
    if (!may_forward(cookie) || READ_RETURN_ADDRESS(&caller, ctx))
        return 0;
    return is_part_of_outer(PT_REGS_SP(ctx), caller, PT_REGS_FP(ctx), PT_REGS_IP(ctx),
                            (cookie & ~0xffffffffULL) | kind);
}

/* Session programs skip the return of a nested call. Other return probes recognize it by the outer call, which is still
 * kept: it lies further up the stack, or in another file at the same place. */
static __attribute__((noinline)) int is_nested_return(u64 cookie, u64 sp)
{
    struct thread_state* thread = may_forward(cookie) ? thread_state(bpf_get_current_task_btf()) : 0;
    if (!thread)
        return 0;
    struct outer_call* outer = &thread->outer;
    if (outer->frame.sp == sp && outer->file == driver_number(cookie)) {
        outer->frame.sp = 0;
        return 0;
    }
    return outer->frame.sp >= sp && outer->frame.sp - sp <= OUTER_STACK_MAX;
}

INLINE bool returns_nested(struct pt_regs* ctx)
{
    return RETURN_ADDRESS_STAYS && forwarding_files && is_nested_return(bpf_get_attach_cookie(ctx), SP_AT_ENTRY(ctx));
}

#endif
