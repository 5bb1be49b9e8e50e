/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Counters of the data that BPF programs had to drop. The messages are in src/run/report_notes.cpp. */
#ifndef GPUSNOOP_LOSS_H
#define GPUSNOOP_LOSS_H

enum loss {
    LOSS_EVENT,     /* ring buffer full: the record of an event (a call, gap or GPU error) is missing */
    LOSS_ROW,       /* table and ring buffer full: a call is not counted in any row */
    LOSS_DETAIL,    /* a process has used up its share of the table: a call is counted in a row with less detail */
    LOSS_NAME,      /* ring buffer full: the name of a kernel or of a Python function is unknown */
    LOSS_ARGUMENTS, /* arguments in unreadable memory: the call is counted without some of its details */
    LOSS_START,     /* there was no room for the state of a call: the call is not counted, or lacks details */
    LOSS_END,       /* a call returned whose entry was not seen, for example because it was in flight at attach */
    LOSS_ADDRESS, /* a probe's address has no row in the probe table: the call is not counted (--attach tracefs only) */
    LOSS_STACK,   /* a stack could not be read, or there was no room for it */
    LOSS_STATE,   /* there was no room for the state of an object, for example a capture, context, graph or mapping */
    LOSS_WAITING, /* there was no room for a wait: it is not reported until it returns */
    LOSS_UNTRACKED, /* there was no room for an allocation: its free cannot be matched */
    LOSS_PROCESS,   /* there was no room for a process: its rows have no name and no cgroup */
    LOSS_LEFT,      /* a thread left a call without returning (longjmp, exception): the call is not counted */
    LOSS_RETURN,    /* the return of a driver call was missed: the call is neither counted nor shown as in flight */
    LOSS_THREAD,    /* there was no room for a thread: its time is not reported */
    LOSS_TIME_PART, /* a thread's change to another part (enum time_part) was not recorded */
    LOSS_GAP,       /* there was no room for a gap between launches: it is in no histogram */
    LOSS_BLOCK,     /* there was no room for a blocked time: it is missing from the rows by stack or by file */
    LOSS_WAKER,     /* there was no room for a waker: how it spent its time is unknown */
    LOSS_CALLERS,   /* several stacks with different callers have the same id; counted by the front end */
    LOSS_RUN,       /* the kernel skipped a program because BPF was already active on that CPU; counted by the kernel */
    LOSSES,
};

#endif
