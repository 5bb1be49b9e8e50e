/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Gaps: the time from the end of a launching call to the start of the thread's next launching call. */
#ifndef GPUSNOOP_GAP_H
#define GPUSNOOP_GAP_H

#include "thread_time.h"

/* Key of a thread's gaps of similar length. */
struct gap_key {
    __u32 place; /* index in the table of threads */
    __u32 bucket;
    __u64 stream; /* 0 if gaps are not per stream */
};

/* Key of gaps per stream, which are between launches by one thread into one stream. */
struct stream_place {
    __u64 stream;
    __u32 place;
    __u32 zero;
};

/* The kernel, graph or host function that a call launched. */
struct gap_launch {
    __u64 handle; /* 0: unknown, because it is not in a register */
    __u32 kind;   /* enum probe_kind */
    __u32 zero;
};

struct gap_count {
    __u64 count;
    __u64 ns[TIME_PARTS]; /* sums over all gaps */
};

struct gap_owner {
    struct image image;
    struct cgroups cgroups; /* at the thread's first call */
};

enum woken_by {
    WOKEN_BY_UNKNOWN,
    WOKEN_BY_THREAD,
    WOKEN_BY_TIMEOUT,   /* timeout of the system call that blocked */
    WOKEN_BY_SIGNAL,    /* signal sent by an interrupt: by a timer, or for I/O */
    WOKEN_BY_INTERRUPT, /* interrupt by a device, the network, or another timer */
};

/* End of the longest time that a thread was blocked in a period: the waker, and why the thread was blocked. */
struct waker {
    __u32 pid;
    __u32 tid;     /* 0: not woken by a thread, or not blocked */
    char comm[16]; /* name of the waking thread */
    __u64 blocked_ns;
    __u32 part;       /* enum time_part that the blocked thread was in */
    __s32 user_stack; /* stacks of a thread blocked outside of calls, if requested; negative: unknown */
    __s32 kernel_stack;
    __u32 by;                 /* enum woken_by */
    __u64 fault;              /* address of a page fault; 0: unknown */
    char file[FILE_NAME];     /* name of the file that was read or written, possibly cut; "": unknown */
    char folder[FOLDER_NAME]; /* last folder of the file's path */
};

/* A period of a thread: how long the thread was in each part, and what woke it. */
struct period {
    __u64 ns[TIME_PARTS];
    struct waker waker;
};

/* A period in progress. period.ns has the thread's total times at the period's start. */
struct open_period {
    __u64 since; /* start, in ns after thread_time.begin_ns; 0: no period */
    struct period period;
    struct gap_launch before; /* the launch before the gap */
};

/* A thread that makes no traced calls, but has woken one that does, directly or through other wakers. */
struct waking_thread {
    struct thread_time time;
    __u64 woke_ns;        /* when it last woke such a thread, or, before that, when tracking began; CLOCK_MONOTONIC */
    struct period open;   /* period in progress, since woke_ns */
    struct period before; /* period between its last two wake-ups of such threads */
    __u32 known;          /* `before` is valid */
    __u32 steps;          /* number of wake-ups from this thread to one that makes traced calls */
};

#define WAKERS 3 /* number of wake-ups that are followed back from a gap */

/* A line of -e. */
struct gap_record {
    __u32 type; /* RECORD_GAP */
    __u32 tid;
    __u64 time_ns; /* start of the gap, CLOCK_MONOTONIC */
    struct gap_owner key;
    char comm[16]; /* of the thread */
    __u64 gap_ns;
    struct period gap; /* the parts add up to gap_ns */
    __u32 running;     /* at the gap's end, number of runnable threads on the CPUs that this thread may use */
    __u32 cpus;        /* number of these CPUs; 0: unknown */
    /* Periods of the thread's waker, of that waker's waker, and so on, each between the waker's last two wake-ups. */
    __u32 known; /* number of valid elements in `wakers` */
    __u32 zero;
    struct period wakers[WAKERS];
    struct gap_launch before; /* launches before and after the gap */
    struct gap_launch after;
};

#endif
