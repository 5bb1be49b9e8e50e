/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Base of every BPF program: preemption guard, loss counters, ring buffer. */
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

extern void bpf_preempt_disable(void) __ksym __weak; /* since Linux 6.10 (fc7566ad0a82) */
extern void bpf_preempt_enable(void) __ksym __weak;
/* The same kernel function with its two signatures; libbpf resolves the one that the kernel has. */
extern bool bpf_session_is_return___alone(void) __ksym __weak;        /* since 6.13 (d920179b3d46) */
extern bool bpf_session_is_return___context(void* ctx) __ksym __weak; /* since 7.0 */

#define GUARDED bpf_ksym_exists(bpf_preempt_disable)

/* From Linux 6.15 on (e2d8f560d178), global functions may be called with preemption disabled. Such kernels are detected
 * by bpf_res_spin_lock(), which was added in the same release (97eb35f3ad42). Kernels from 6.10 to 6.14 reject such
 * calls. On these and older kernels, guard_calls_begin() does nothing. */
struct bpf_res_spin_lock {
    u32 val; /* makes the type complete; libbpf cannot resolve a function that takes a pointer to an incomplete type */
};
extern int bpf_res_spin_lock(struct bpf_res_spin_lock* lock) __ksym __weak;
#define GUARDED_CALLS bpf_ksym_exists(bpf_res_spin_lock)

/* A uprobe program stays on its CPU (migrate_disable()), but another task can preempt it there and run the same
 * program. So programs change per-CPU data either between guard_begin() and guard_end(), or atomically. */
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

/* From 6.13 on (a76ab5731e32), the kernel may run a program on a private per-CPU stack instead of the task's stack. If
 * another task then preempts the program and runs it too, it overwrites that stack. This has caused panics on
 * preemptible kernels. Reading user memory into such a stack is also 60 ns slower, because the kernel's check of the
 * destination is fast only for the task's own stack. A program with a tail call gets no private stack
 * (check_max_stack_depth(), 6.13). So each program contains a tail call, which is never executed and which the verifier
 * removes as dead code. */
const volatile bool never = false;
/* Set if the front end found that programs have a private stack anyway (attach/programs.hpp). All programs then run
 * with preemption disabled. */
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

/* If true, probe hits are counted. The front end estimates the overhead of tracing from their number. */
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

/* Header of a program that is attached to probes. tests/bpf replaces it, to run programs without probes. */
#ifndef PROBE_PROGRAM
#define PROBE_PROGRAM(NAME) SEC("uprobe") int NAME(struct pt_regs* ctx)
#endif

/* Defines the BPF programs for one kind of call. NAME_entry runs at the first instruction of a function, NAME_return
 * when the function returns. NAME_session runs at both. If it returns 1 at entry, the kernel does not run it at the
 * return of this call. The other programs always return 0, because before 6.13, a uprobe_multi program that returns 1
 * makes the kernel remove the probe. The front end chooses the attach type before it loads a program. is_idle(),
 * becomes_active() and returns_nested() are defined in base/probe.bpf.h. */
#define ENTRY_PROGRAM(NAME, BODY, ...)                                                                                 \
    PROBE_PROGRAM(NAME)                                                                                                \
    {                                                                                                                  \
        program_begin(ctx);                                                                                            \
        hit(HIT_ENTRY);                                                                                                \
        BODY(ctx, ##__VA_ARGS__);                                                                                      \
        program_end();                                                                                                 \
        return 0;                                                                                                      \
    }

#define CALL_PROGRAMS(NAME, ENTRY, RETURN, ...)                                                                        \
    ENTRY_PROGRAM(NAME##_entry, ENTRY, ##__VA_ARGS__)                                                                  \
    PROBE_PROGRAM(NAME##_return)                                                                                       \
    {                                                                                                                  \
        program_begin(ctx);                                                                                            \
        hit(HIT_RETURN);                                                                                               \
        if (!is_idle(ctx) && !returns_nested(ctx))                                                                     \
            RETURN(ctx, ##__VA_ARGS__);                                                                                \
        program_end();                                                                                                 \
        return 0;                                                                                                      \
    }                                                                                                                  \
    PROBE_PROGRAM(NAME##_session)                                                                                      \
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

/* Reads a word of the traced process's memory. Returns 0 if it is unreadable. */
INLINE u64 read_word(u64 address)
{
    u64 value = 0;
    bpf_probe_read_user(&value, sizeof(value), (void*)address);
    return value;
}

/* Adds to a per-CPU value in one instruction. If a task were preempted between a load and a store, its store would undo
 * the additions of the tasks that ran in between. */
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

/* A wake-up costs four times as much as a record (2,500 against 626 ns), so the reader polls periodically. A record
 * wakes the reader only if the amount of unread data passes a multiple of 1 << ring_wake_shift bytes. If every record
 * woke the reader, a slow reader would slow the traced process down to the reader's speed. */
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
