/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* How programs begin: a probe has fired, and somebody asked for the one who calls. */
#ifndef GPUSNOOP_WANTED_BPF_H
#define GPUSNOOP_WANTED_BPF_H

#include "base/probe.bpf.h"
#include "base/process.bpf.h"
#include "base/thread.bpf.h"

#ifdef SHOWS_WAITING /* by objects with kinds/wait.bpf.h, before all includes */
#include "base/left_wait.bpf.h"

bool waits_go_on = false; /* set by the front end: some thread has been in a wait for more than LONG_WAIT_NS */

INLINE void look_for_left_wait(struct pt_regs* ctx)
{
    if (waits_go_on)
        end_left_wait(PT_REGS_SP(ctx), LONG_WAIT_NS);
}
#else
INLINE void look_for_left_wait(struct pt_regs* ctx) {}
#endif

INLINE u32 begun_row(struct pt_regs* ctx, u32 only)
{
    look_for_left_wait(ctx);
    return row_number(ctx, only);
}

/* The number of the row whose probe has fired; 0 where nobody asked for the thread, or the probe does not count. */
INLINE u32 wanted_row_of(struct pt_regs* ctx, struct task_struct* task, u32 only)
{
    return wanted(task) ? begun_row(ctx, only) : 0;
}

INLINE u32 wanted_row(struct pt_regs* ctx, struct task_struct* task)
{
    return wanted_row_of(ctx, task, 0);
}

/* The same of any thread of a process that somebody asked for. */
INLINE u32 wanted_row_of_process(struct pt_regs* ctx, struct task_struct* task)
{
    return wanted_process(task) ? begun_row(ctx, 0) : 0;
}

/* A call returns that no entry has kept: a loss, if somebody asked for it. By itself, for it is seldom. */
static __attribute__((noinline)) int lose_end(struct task_struct* task, u32 of_process)
{
    if (task && (of_process ? wanted_process(task) : wanted(task)))
        lose(LOSS_END, 1);
    return 0;
}

/* A call that is not counted, but followed for what it says: at its entry, or at its return. */
struct followed {
    struct task_struct* task;
    struct thread_state* thread; /* at its return */
    struct open_call* call;
    const volatile struct probe_row* row;
};

#define FOLLOWED_ROW 0 /* the word of the open call that keeps the row's number; the others are the program's own */
#define FOLLOWED_NO_FURTHER 0 /* in its place: the call says nothing more */

/* False where the call is not followed. */
INLINE bool follow_call(struct pt_regs* ctx, u64 part, struct followed* followed)
{
    followed->task = bpf_get_current_task_btf();
    u32 number = wanted_row_of_process(ctx, followed->task);
    if (!number)
        return false;
    followed->row = probe_row(number);
    followed->call = open_call_of(ctx, followed->task, part);
    if (!followed->call)
        return false;
    followed->call->word[FOLLOWED_ROW] = number;
    return true;
}

/* The call says nothing more. It is kept all the same: where a return has a probe of its own, a call without an entry
 * would be told as lost. */
INLINE int follow_no_further(struct followed* followed)
{
    followed->call->word[FOLLOWED_ROW] = FOLLOWED_NO_FURTHER;
    return 0;
}

/* The call returns. False where it was not followed, which is counted where it should have been. */
INLINE bool followed_returns(struct pt_regs* ctx, u64 part, struct followed* followed)
{
    followed->task = bpf_get_current_task_btf();
    followed->thread = thread_state(followed->task);
    followed->call = followed->thread ? close_call(ctx, followed->thread, part) : 0;
    if (!followed->call) {
        lose_end(followed->task, true);
        return false;
    }
    u32 number = followed->call->word[FOLLOWED_ROW];
    followed->row = probe_row(number);
    return number != FOLLOWED_NO_FURTHER;
}

#endif
