/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Everything the kernel side could not do, counted. Row texts are in src/run/report_notes.cpp. */
#ifndef GPUSNOOP_LOSS_H
#define GPUSNOOP_LOSS_H

enum loss {
    LOSS_EVENT,     /* ring buffer full: an event line is missing */
    LOSS_ROW,       /* table full and ring buffer full: a call is in no row */
    LOSS_DETAIL,    /* a process has its share of the table: a call is in a row of less detail */
    LOSS_NAME,      /* ring buffer full: a kernel name was not learned */
    LOSS_ARGUMENTS, /* arguments in memory that could not be read: the call is counted, its shape is not */
    LOSS_START,     /* a call began, but its state could not be kept: no result, no duration */
    LOSS_END,       /* a call returned that was not seen to begin: it was in flight at attach */
    LOSS_ADDRESS,   /* a probe fired that could not be told from its neighbours (tracefs tier only) */
    LOSS_STACK,     /* the stack could not be read or kept */
    LOSS_STATE,     /* capture, context or legacy shape state that found no room */
    LOSS_WAITING,   /* a call that waits found no room: it is not shown before it returns */
    LOSS_UNTRACKED, /* an allocation found no room: its free cannot be told from that of an older one */
    LOSS_PROCESS,   /* a process found no room: its rows are without name and cgroup */
    LOSS_LEFT,      /* a call was left without a return (longjmp, exception): no result, no duration */
    LOSS_RETURN,    /* the return of a call into a driver was missed: neither counted nor going on */
    LOSS_THREAD,    /* a thread found no room: its time is not told */
    LOSS_TIME_PART, /* a thread went from one part of its time to another, which was not kept */
    LOSS_GAP,       /* a gap between launches found no room: it is in no histogram */
    LOSS_BLOCK,     /* a block found no room: it is in no row of stacks */
    LOSS_WAKER,     /* a thread that wakes others found no room: it is not known what it did */
    LOSS_CALLERS,   /* a stack known by its id has other callers this time: the front end counts that itself */
    LOSS_RUN,       /* the kernel did not run a program, as BPF was at work on that CPU: it counts that itself */
    LOSSES,
};

#endif
