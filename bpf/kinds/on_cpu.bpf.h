/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Threads that have a CPU again. */
#ifndef GPUSNOOP_ON_CPU_BPF_H
#define GPUSNOOP_ON_CPU_BPF_H

#include "kinds/block_stacks.bpf.h"
#include "kinds/file_blocks.bpf.h"

static __attribute__((noinline)) int end_absence(struct task_struct* task, const struct thread_state* thread,
                                                 struct thread_time* time, u64 at_most)
{
    u32 part = time_part_of(time->now);
    bool counts = (count_blocks || count_files) && thread && is_blocked(part);
    u64 before = counts ? time->ns[part] : 0;
    turn(time, TIME_OFF_BITS, TIME_CPU, end_queueing(task, time), at_most);
    if (counts && count_blocks)
        count_block(thread, time, part, time->ns[part] - before);
    if (counts && count_files && (part == TIME_DISK || part == TIME_FAULT))
        count_file_wait(task, time, thread->place - 1, time->ns[part] - before);
    return 0;
}

/* The thread has a CPU, and may have got it without a word: a kernel need not run programs at each switch (6.18 of a
 * Firecracker guest does not at those away from some threads of the guest's own, and does not count that as skipped).
 * The scheduler's account of it says since when. */
INLINE void has_cpu(struct task_struct* task, const struct thread_state* thread, struct thread_time* time)
{
    u32 off = time->now & TIME_OFF_BITS;
    if (off != TIME_CPU && off != TIME_ENDED && !is_interrupted(off))
        end_absence(task, thread, time, was_away(task, time));
}

/* The thread ends, or becomes another program. */
INLINE void end_time(struct task_struct* task, u32 tid)
{
    struct thread_state* thread = thread_state(task);
    struct thread_time* time = time_of(thread);
    if (!time)
        return;
    has_cpu(task, thread, time);
    thread->place = 0;
    for (u32 i = 0; i < OPEN_CALLS; i++)
        thread->open[i].place = 0;
    mark(tid, -1);
    time->faults = task->maj_flt - time->faults_before;
    read_comm(task, (u64*)time->comm);
    if (!follow_switches)
        read_cpu_use(task, &time->at_end);
    turn(time, TIME_OFF_BITS | TIME_CALL_BITS, TIME_ENDED, 0, UP_TO_NOW);
}

#endif
