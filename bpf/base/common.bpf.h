/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What every program starts from: guard, losses, ring buffer. */
#ifndef GPUSNOOP_COMMON_BPF_H
#define GPUSNOOP_COMMON_BPF_H

#include "shared/kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "base/machine.bpf.h"
#include "base/maps.bpf.h"
#include "base/verifier.bpf.h"
#include "shared/loss.h"
#include "shared/probe.h"
#include "shared/record.h"

extern void bpf_preempt_disable(void) __ksym __weak; /* 6.10, fc7566ad0a82 */
extern void bpf_preempt_enable(void) __ksym __weak;
/* Two flavours of one function: libbpf resolves the one that the kernel has. */
extern bool bpf_session_is_return___alone(void) __ksym __weak;        /* 6.13, d920179b3d46 */
extern bool bpf_session_is_return___context(void* ctx) __ksym __weak; /* 7.0 */

#define GUARDED bpf_ksym_exists(bpf_preempt_disable)

/* Functions that are verified once may be called under the guard from 6.15 on (e2d8f560d178), which brought this one,
 * too (97eb35f3ad42): kernels from 6.10 to 6.14 refuse them there, and do without a guard, as those before. */
struct bpf_res_spin_lock {
    u32 val; /* declared only, it would be no type of the kernel's, and the function not there */
};
extern int bpf_res_spin_lock(struct bpf_res_spin_lock* lock) __ksym __weak;
#define GUARDED_CALLS bpf_ksym_exists(bpf_res_spin_lock)

/* A uprobe program stays on its CPU (migrate_disable()), but may be preempted there by another task whose probe runs
 * the same program. What belongs to the CPU is changed between these two, or atomically. */
INLINE void guard_begin(void)
{
    if (GUARDED)
        bpf_preempt_disable();
}

INLINE void guard_end(void)
{
    if (GUARDED)
        bpf_preempt_enable();
}

INLINE void guard_calls_begin(void)
{
    if (GUARDED_CALLS)
        bpf_preempt_disable();
}

INLINE void guard_calls_end(void)
{
    if (GUARDED_CALLS)
        bpf_preempt_enable();
}

/* From 6.13 on (a76ab5731e32) a program may have one stack per CPU instead of per task. A second run then overwrites
 * the first one's, and kernels with preemption have been seen to panic; and into such a stack the kernel reads user
 * memory 60 ns slower than into the task's, whose bounds it knows at once. A program with a tail call gets none
 * (check_max_stack_depth(), 6.13): this one is never made, and gone once the program is loaded. */
const volatile bool never = false;
/* The front end has found such a stack all the same (attach/programs.hpp): nothing is to preempt a program. */
const volatile bool stack_of_cpu = false;

INLINE void program_begin(struct pt_regs* ctx)
{
    if (never)
        bpf_tail_call(ctx, (void*)0, 0);
    if (stack_of_cpu)
        guard_begin();
}

INLINE void program_end(void)
{
    if (stack_of_cpu)
        guard_end();
}

/* How often a probe was hit: what tracing costs the traced ones. */
const volatile bool count_hits = false;

PERCPU_ARRAY_MAP(hits, HITS, u64);

INLINE void add(u64* to, u64 n);

INLINE void hit(u32 which)
{
    u64* count = count_hits ? bpf_map_lookup_elem(&hits, &which) : 0;
    if (count)
        add(count, 1);
}

INLINE bool is_session_return(struct pt_regs* ctx)
{
    if (bpf_ksym_exists(bpf_session_is_return___context))
        return bpf_session_is_return___context(ctx);
    return bpf_session_is_return___alone();
}

/* Programs of a kind. NAME_entry sits at the first instructions of a function and NAME_return at its end; NAME_session
 * is both in one, and its entry may return 1 to say that this call's return does not matter. Elsewhere a return value
 * of 1 would ask the kernel to remove the probe (uprobe_multi before 6.13), so the others return 0. The attach type is
 * chosen by the front end before load. base/probe.bpf.h skips probes that are idle, and calls that are parts of others.
 * What follows is for the bodies. */
#define ENTRY_PROGRAM(NAME, BODY, ...)                                                                                 \
    SEC("uprobe")                                                                                                      \
    int NAME(struct pt_regs* ctx)                                                                                      \
    {                                                                                                                  \
        program_begin(ctx);                                                                                            \
        hit(HIT_ENTRY);                                                                                                \
        BODY(ctx, ##__VA_ARGS__);                                                                                      \
        program_end();                                                                                                 \
        return 0;                                                                                                      \
    }

#define CALL_PROGRAMS(NAME, ENTRY, RETURN, ...)                                                                        \
    ENTRY_PROGRAM(NAME##_entry, ENTRY, ##__VA_ARGS__)                                                                  \
    SEC("uprobe")                                                                                                      \
    int NAME##_return(struct pt_regs* ctx)                                                                             \
    {                                                                                                                  \
        program_begin(ctx);                                                                                            \
        hit(HIT_RETURN);                                                                                               \
        if (!is_idle(ctx) && !returns_nested(ctx))                                                                     \
            RETURN(ctx, ##__VA_ARGS__);                                                                                \
        program_end();                                                                                                 \
        return 0;                                                                                                      \
    }                                                                                                                  \
    SEC("uprobe")                                                                                                      \
    int NAME##_session(struct pt_regs* ctx)                                                                            \
    {                                                                                                                  \
        int skip_return = 0;                                                                                           \
        bool is_return = is_session_return(ctx);                                                                       \
        program_begin(ctx);                                                                                            \
        hit(is_return ? HIT_RETURN : HIT_ENTRY);                                                                       \
        if (!is_return)                                                                                                \
            skip_return = ENTRY(ctx, ##__VA_ARGS__) && !becomes_active(ctx);                                           \
        else if ((!is_switching_probes() || !is_idle(ctx)) && !returns_nested(ctx))                                    \
            RETURN(ctx, ##__VA_ARGS__);                                                                                \
        program_end();                                                                                                 \
        return skip_return;                                                                                            \
    }

/* Of the traced process; 0 where it cannot be read. */
INLINE u64 read_word(u64 address)
{
    u64 value = 0;
    bpf_probe_read_user(&value, sizeof(value), (void*)address);
    return value;
}

/* Adds to a word of a per-CPU value, in one instruction: a task preempted between load and store would undo the other's
 * addition. */
INLINE void add(u64* to, u64 n)
{
    __sync_fetch_and_add(to, n);
}

PERCPU_ARRAY_MAP(losses, LOSSES, u64);

INLINE void lose(u32 loss, u64 n)
{
    u64* count = bpf_map_lookup_elem(&losses, &loss);
    if (count)
        add(count, n);
}

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 8 << 20); /* set by the front end */
} ring SEC(".maps");

const volatile __u32 ring_wake_shift = 20;

/* A wake-up per record costs four times as much as the record (2,500 against 626 ns), so the reader comes by itself
 * every tick and is woken only when much is waiting: by the record that makes it much, not by each one while the reader
 * is behind, which would slow the traced process down to the reader's speed. */
INLINE u64 ring_flags(u64 bytes)
{
    u64 waiting = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
    return waiting >> ring_wake_shift > (waiting - bytes) >> ring_wake_shift ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

INLINE bool ring_is_half_full(void)
{
    return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 2;
}

#endif
