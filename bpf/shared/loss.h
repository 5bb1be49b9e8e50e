/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Counters of everything that BPF programs had to drop. The messages are in src/run/report_notes.cpp. */
#ifndef GPUSNOOP_LOSS_H
#define GPUSNOOP_LOSS_H

enum loss {
    LOSS_EVENT,     /* ring buffer full: an event line is missing */
    LOSS_ROW,       /* table and ring buffer full: a call is in no row */
    LOSS_DETAIL,    /* a process has used up its share of the table: a call is in a row of less detail */
    LOSS_NAME,      /* ring buffer full: a kernel's name is unknown */
    LOSS_ARGUMENTS, /* arguments in unreadable memory: the call is counted without its shape */
    LOSS_START,     /* a call began, but its state could not be kept: no result, no duration */
    LOSS_END,       /* a call returned whose entry was not seen, for example because it was in flight at attach */
    LOSS_ADDRESS,   /* a probe could not be distinguished from its neighbours (tracefs tier only) */
    LOSS_STACK,     /* the stack could not be read or kept */
    LOSS_STATE,     /* state of a capture, context or legacy shape found no room */
    LOSS_WAITING,   /* a wait found no room: it is not shown before it returns */
    LOSS_UNTRACKED, /* an allocation found no room: its free cannot be matched */
    LOSS_PROCESS,   /* a process found no room: its rows have no name and no cgroup */
    LOSS_LEFT,      /* a call was left without returning (longjmp, exception): no result, no duration */
    LOSS_RETURN,    /* the return of a driver call was missed: the call is neither counted nor shown as in flight */
    LOSS_THREAD,    /* a thread found no room: its time is not reported */
    LOSS_TIME_PART, /* a thread's change from one part of its time to another was not recorded */
    LOSS_GAP,       /* a gap between launches found no room: it is in no histogram */
    LOSS_BLOCK,     /* a blocked period found no room: it is in no row of stacks or files */
    LOSS_WAKER,     /* a waker found no room: its activity is unknown */
    LOSS_CALLERS,   /* a stack id stands for several stacks with different callers; counted by the front end */
    LOSS_RUN,       /* the kernel skipped a program because another was running on that CPU; counted by the kernel */
    LOSSES,
};

#endif
