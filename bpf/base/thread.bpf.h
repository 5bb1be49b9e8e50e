/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Per-thread state between two probes: calls in flight, and the runtime call around a driver call. The state is in task
 * storage, which is as fast as a session cookie, is freed when the thread exits, and has no fixed capacity. */
#ifndef GPUSNOOP_THREAD_BPF_H
#define GPUSNOOP_THREAD_BPF_H

#include "base/common.bpf.h"
#include "shared/histogram.h"
#include "shared/probe.h"
#include "shared/process.h"

/* The frame of a call at its entry probe. As long as the stack slot at `sp` holds the return address, the call is
 * assumed to be running, because later calls overwrite the slot. So no return probe is needed. On arm64 the return
 * address has no fixed slot; is_below() walks the frame records instead. */
struct call_frame {
    u64 sp;
    u64 return_address;
};

/* A runtime call in flight. */
struct runtime_call {
    u64 func;
    struct call_frame frame;
    u32 calls; /* number of driver calls that are still expected inside this runtime call */
    u32 zero;
};

/* Value of runtime_call.calls if a runtime call's arguments do not show how many driver calls it makes. */
#define DRIVER_CALLS_ANY 0x40000000u

/* Maximum distance on the stack, in bytes, between an outer call and a driver call that is nested in it. */
#define OUTER_STACK_MAX (64 << 10)

/* State of a call, stored at its entry and found at its return by the stack pointer. Each program defines the meaning
 * of open_call.word. */
#define OPEN_CALL_WORDS 15

/* Several programs of a BPF object may track the same call, each with its own enum call_part. Programs with PART_COUNT
 * or PART_WAIT count calls. Programs with PART_MEMORY or PART_STATE only track state. */
enum call_part {
    PART_COUNT,
    PART_WAIT,
    PART_MEMORY,
    PART_STATE,
};

struct open_call {
    u64 sp_part; /* stack pointer at entry, combined with enum call_part and COUNT_IF_LEFT */
    u64 entry_ns;
    u64 word[OPEN_CALL_WORDS];
};

#ifndef OPEN_CALLS
/* Maximum number of open calls per thread, a power of two. Open calls are, for example, a runtime call, the driver call
 * inside it, and a host function that the driver calls. */
#define OPEN_CALLS 4
#endif

/* Number of contexts that are kept below the current one, a power of two. Deeper contexts become unknown. */
#define CONTEXTS_BELOW 8

/* Kinds of calls whose stacks are sampled: see sample_call(). */
enum sampled {
    SAMPLED_NONE,
    SAMPLED_LAUNCHES,
    SAMPLED_COPIES,
    SAMPLED_POLLS,
    SAMPLED, /* number of kinds, a power of two */
};

struct sampling {
    u64 since;  /* start of the current sampling period, in jiffies */
    u32 taken;  /* number of samples taken in this period */
    u32 left;   /* number of calls to skip before the next sample */
    u32 stride; /* average number of calls that are skipped between two samples */
};

/* The outermost driver call of a thread. Other driver calls may be nested in it (base/probe.bpf.h). */
struct outer_call {
    struct call_frame frame; /* if `sp` is 0, no call is recorded */
    u32 file;                /* number of the file that contains the function */
    u32 kind;                /* enum probe_kind, from probe_row.counted_as */
    u32 jumped_to;           /* number of the driver file to which this call last jumped; see is_jump() */
    u32 zero;
    u64 jump_hooks; /* hooks that have handled that jump, one bit per hook */
};

/* The mapping that the last successful call of file_at() found. While another thread, or the attachment of a probe, has
 * locked the process's mappings, file_at() uses this mapping if it contains the address. */
struct mapped_file {
    u64 start; /* start address of the mapping */
    u64 end;
    u64 file; /* returned by file_at() */
};

enum address_role {
    ADDRESS_OF_CALLER,
    ADDRESS_OF_FUNCTION,
    ADDRESS_OF_OUTER_CALLER,
    ADDRESS_ROLES,
};

struct thread_state {
    struct runtime_call runtime;
    struct outer_call outer;
    struct mapped_file mapped[ADDRESS_ROLES];
    u64 last_launch_ns;
    u64 context;               /* handle of the current context; 0: unknown */
    u64 below[CONTEXTS_BELOW]; /* contexts below the current one, which become current again after pops */
    u64 depth;
    u32 device[2]; /* current device: ordinal + 1; 0: unknown. CUDA and HIP have separate ordinals: see device_by() */
    u32 place;     /* 1 + the thread's place in the tool's table of threads; 0: none yet */
    u32 serial;    /* serial of the image that this state belongs to: see begin_image() */
    u64 waits_at;  /* stack pointer at entry of the wait in progress (base/left_wait.bpf.h) */
    u64 waited_ns; /* 1 + ns that the thread has waited since its last sampled stack; 0: no stack was sampled yet */
    struct sampling sampling[SAMPLED];
    /* One bit per hook. While both attachments exist, a set bit means that this thread has hit one of the hook's probes
     * of the second attachment. The hook's probes of the first attachment then skip the thread's calls: see
     * is_idle_now(). */
    u64 handled_by_second;
    struct open_call open[OPEN_CALLS];
};

TASK_STORAGE_MAP(threads, struct thread_state);

INLINE struct thread_state* thread_state(struct task_struct* task)
{
    return bpf_task_storage_get(&threads, task, 0, 0);
}

INLINE struct thread_state* thread_state_create(struct task_struct* task)
{
    return bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Returns the field that holds the thread's current device for calls of this API layer. */
INLINE u32* device_by(struct thread_state* thread, u32 layer)
{
    return &thread->device[is_zero(opaque(layer) ^ LAYER_HIP) & 1];
}

/* Resets the state of a thread after an exec, because the contexts and devices of the old program are no longer
 * valid. */
INLINE void begin_image(struct thread_state* thread, const struct image* image)
{
    if (thread->serial == image->serial)
        return;
    thread->serial = image->serial;
    thread->last_launch_ns = thread->context = thread->depth = 0;
    thread->device[0] = thread->device[1] = 0;
}

/* Returns 1 + the ordinal of the thread's device if the state belongs to this image, else 0 (unknown). */
INLINE u32 device_in_image(struct thread_state* thread, const struct image* image, u32 layer)
{
    return *device_by(thread, layer) * is_zero(thread->serial ^ image->serial);
}

INLINE void runtime_enter(struct pt_regs* ctx, struct thread_state* thread, u64 func, u32 calls)
{
    struct runtime_call call = {.func = func, .frame = {.sp = PT_REGS_SP(ctx)}, .calls = calls};
    if (READ_RETURN_ADDRESS(&call.frame.return_address, ctx))
        call.calls = 0;
    thread->runtime = call;
}

/* True if an address is in the trampoline of return probes. After the entry probes have run, a return probe (ours or
 * another tracer's) replaces the return address with the trampoline's. */
INLINE bool in_trampoline(struct task_struct* task, u64 address)
{
    u64 page = READ(task, mm, uprobes_state.xol_area, vaddr);
    return page && address >= page && address < page + 4096;
}

#define RETURNS_CHECKED_MAX 8 /* at most this many pending return probes are checked, innermost first */

/* True if the call with this stack pointer at entry has a return probe and has not returned. */
INLINE bool awaits_return(struct task_struct* task, u64 sp)
{
    u64 slot = 0;
    if (RETURN_ADDRESS_STAYS)
        return !bpf_probe_read_user(&slot, sizeof(slot), (void*)sp) && in_trampoline(task, slot);
    struct return_instance* awaited = READ(task, utask, return_instances);
    for (u32 i = 0; i < RETURNS_CHECKED_MAX && awaited; i++) {
        if (READ(awaited, stack) == sp)
            return true;
        awaited = READ(awaited, next);
    }
    return false;
}

/* Maximum number of frames between a driver call and its runtime call. CUDA 11.8 has up to five. */
#define FRAMES_CHECKED_MAX 16

struct frame_record { /* AAPCS64, 6.4.6: x29 points to the innermost record */
    u64 outer;
    u64 return_address;
};

INLINE bool is_same_address(u64 one, u64 other)
{
    return !((one ^ other) << (64 - SIGNED_FROM));
}

/* True if a call with this stack and frame pointer is part of the outer call. This is so if the outer call has a
 * pending return probe. It is also so if a frame between `sp` and the outer call's stack pointer has the outer call's
 * return address. If the code has no frame records, the call is assumed to be part of the outer call. */
INLINE bool is_below(struct task_struct* task, const struct call_frame* outer, u64 sp, u64 fp)
{
    u64 place = fp, inner = sp;
    bool below = true;
    for (u32 i = 0; i < FRAMES_CHECKED_MAX; i++) {
        struct frame_record frame;
        if (place < inner || place >= outer->sp || bpf_probe_read_user(&frame, sizeof(frame), (void*)place))
            break;
        below = is_same_address(frame.return_address, outer->return_address);
        if (below)
            break;
        inner = place + 1;
        place = frame.outer;
    }
    return below || awaits_return(task, outer->sp);
}

/* True if the outer call has not returned, and encloses a call with this stack and frame pointer. */
INLINE bool is_running(struct task_struct* task, const struct call_frame* outer, u64 sp, u64 fp)
{
    if (sp >= outer->sp || outer->sp - sp > OUTER_STACK_MAX)
        return false;
    if (!RETURN_ADDRESS_STAYS)
        return is_below(task, outer, sp, fp);
    u64 slot = 0;
    if (bpf_probe_read_user(&slot, 8, (void*)outer->sp))
        return false;
    return slot == outer->return_address || in_trampoline(task, slot);
}

/* Returns the runtime call that encloses this probe's driver call, or NULL. */
INLINE struct runtime_call* inside_runtime(struct pt_regs* ctx, struct task_struct* task, struct thread_state* thread)
{
    struct runtime_call* call = &thread->runtime;
    return call->calls && is_running(task, &call->frame, PT_REGS_SP(ctx), PT_REGS_FP(ctx)) ? call : 0;
}

/* Ends a runtime call at its return probe. If a runtime call has no return probe, is_running() detects that it has
 * returned. */
INLINE void runtime_leave(struct pt_regs* ctx, struct thread_state* thread)
{
    if (thread->runtime.frame.sp + RETURN_POPS == PT_REGS_SP(ctx))
        thread->runtime.calls = 0;
}

INLINE struct runtime_call* runtime_call_around(struct pt_regs* ctx, struct task_struct* task)
{
    struct thread_state* thread = thread_state(task);
    return thread ? inside_runtime(ctx, task, thread) : 0;
}

/* Records the start of a runtime call. `driver_calls` is the number of driver calls expected inside it. */
INLINE void mark_runtime(struct pt_regs* ctx, struct task_struct* task, u64 func, u32 driver_calls)
{
    struct thread_state* thread = thread_state_create(task);
    if (thread)
        runtime_enter(ctx, thread, func, driver_calls);
    else
        lose(LOSS_START, 1);
}

#define SP_FLAG_BITS 7ULL
/* Flag: count a loss if the thread leaves the call without returning. Only one of the programs that track the same call
 * sets the flag, so that the loss is counted once. */
#define COUNT_IF_LEFT 4ULL

INLINE u64 sp_of(u64 sp_part)
{
    return sp_part & ~SP_FLAG_BITS;
}

INLINE bool is_call_at(u64 sp_part, u64 stack, u64 part)
{
    return (sp_part | COUNT_IF_LEFT) == (stack | part | COUNT_IF_LEFT);
}

INLINE struct open_call* open_call_at(struct thread_state* thread, u64 number)
{
    FORGET(number);
    if (number >= OPEN_CALLS)
        return 0;
    PIN(number); /* otherwise clang 19 checks the number only after it has computed the address */
    return &thread->open[number & (OPEN_CALLS - 1)];
}

/* Finds a slot for a new call, after the slots of the open calls that enclose it. Open calls whose stack pointer is
 * below that of the new call were left without returning (longjmp, exception). So were open calls with the same stack
 * pointer and the same enum call_part. Such calls count as losses, and their slots are reused. */
INLINE struct open_call* open_call(struct pt_regs* ctx, struct thread_state* thread, u64 part)
{
    u64 stack = sp_of(PT_REGS_SP(ctx)), count_if_left = part < PART_MEMORY ? COUNT_IF_LEFT : 0, found = OPEN_CALLS,
        left = opaque(0);
    for (u32 i = 0; i < OPEN_CALLS; i++) {
        struct open_call* call = &thread->open[i];
        u64 before = call->sp_part;
        if (sp_of(before) >= stack && !is_call_at(before, stack, part))
            continue;
        left += before & COUNT_IF_LEFT;
        call->sp_part = found == OPEN_CALLS ? stack | part | count_if_left : 0;
        if (found == OPEN_CALLS)
            found = i;
    }
    if (left)
        lose(LOSS_LEFT, left / COUNT_IF_LEFT);
    return open_call_at(thread, found);
}

/* True if another open call with the same enum call_part encloses `call`. Calls that were left without returning do not
 * count, because open_call() has already closed them. */
INLINE bool is_inside_call(const struct thread_state* thread, const struct open_call* call)
{
    bool inside = false;
    for (u32 i = 0; i < OPEN_CALLS; i++)
        inside |= &thread->open[i] != call && thread->open[i].sp_part &&
                  !((thread->open[i].sp_part ^ call->sp_part) & SP_FLAG_BITS & ~COUNT_IF_LEFT);
    return inside;
}

/* Like open_call(). If there is no thread state or no free slot, returns NULL and counts a loss. */
INLINE struct open_call* open_call_in(struct pt_regs* ctx, struct thread_state* thread, u64 part)
{
    struct open_call* call = thread ? open_call(ctx, thread, part) : 0;
    if (!call)
        lose(LOSS_START, 1);
    return call;
}

INLINE struct open_call* open_call_of(struct pt_regs* ctx, struct task_struct* task, u64 part)
{
    return open_call_in(ctx, thread_state_create(task), part);
}

/* Returns the open call that is returning, and frees its slot. Returns NULL if the call is not found. */
INLINE struct open_call* close_call(struct pt_regs* ctx, struct thread_state* thread, u64 part)
{
    u64 stack = sp_of(SP_AT_ENTRY(ctx)), found = OPEN_CALLS;
    for (u32 i = 0; i < OPEN_CALLS; i++)
        if (is_call_at(thread->open[i].sp_part, stack, part))
            found = i;
    struct open_call* call = open_call_at(thread, found);
    if (call)
        call->sp_part = 0;
    return call;
}

#endif
