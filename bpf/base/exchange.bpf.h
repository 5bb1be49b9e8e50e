/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Probes on single processes are replaced by probes on every process while calls go on: the second ones are attached
 * before the first ones are detached, and no call is counted twice or not at all. */
#ifndef GPUSNOOP_EXCHANGE_BPF_H
#define GPUSNOOP_EXCHANGE_BPF_H

#include "base/process.bpf.h"
#include "base/thread.bpf.h"

/* The first probes are limited to target_pids by the kernel. The second cannot be, so ATTACH_BOTH lasts: it filters. */
const volatile bool filter_second = false;

__u32 attach_phase = ATTACH_FIRST; /* set by the front end */

INLINE u64 hook_bit(u64 cookie)
{
    return 1ULL << (cookie >> COOKIE_HOOK_SHIFT & (HOOKS_MAX - 1));
}

INLINE bool being_exchanged(void)
{
    return attach_phase == ATTACH_COMING || attach_phase == ATTACH_BOTH;
}

/* Where both attachments are there, a thread that comes by a probe runs the program of the second, and then that of the
 * first: the kernel puts a new consumer of a uprobe at the head of its list. The front end's word may come between the
 * two. So the second says that it has seen to it, and the first leaves it to the second where that has said so. It need
 * not take that back: a thread that has seen the word once sees it ever after. By itself, for it is seldom. */
static __attribute__((noinline)) int is_idle_now(u64 cookie, u32 phase)
{
    bool second = cookie & COOKIE_SECOND;
    if (phase != ATTACH_BOTH)
        return phase != ATTACH_COMING || second;
    struct task_struct* task = bpf_get_current_task_btf();
    if (filter_second && second && !is_target(task))
        return 1;
    struct thread_state* thread = thread_state_create(task);
    if (!thread) {
        lose(LOSS_START, 1);
        return 1;
    }
    if (second)
        thread->seen_by_second |= hook_bit(cookie);
    return !second && thread->seen_by_second & hook_bit(cookie);
}

/* The probe with this cookie does not count, another one does. */
INLINE bool idle(u64 cookie)
{
    u32 phase = attach_phase;
    return (cookie & COOKIE_SECOND) != phase && is_idle_now(cookie, phase);
}

INLINE bool is_idle(struct pt_regs* ctx)
{
    return idle(bpf_get_attach_cookie(ctx));
}

/* The probe will count: also the return of a call that is being made when it begins to. */
INLINE bool is_coming(struct pt_regs* ctx)
{
    return attach_phase == ATTACH_COMING && bpf_get_attach_cookie(ctx) & COOKIE_SECOND;
}

#endif
