/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Gaps: the time from the end of a call that launches to the begin of its thread's next one. */
#ifndef GPUSNOOP_GAP_H
#define GPUSNOOP_GAP_H

#include "thread_time.h"

/* Key of a thread's gaps of similar length. */
struct gap_key {
    __u32 place; /* index in the table of threads */
    __u32 bucket;
    __u64 stream; /* 0 if gaps are not per stream */
};

/* Key of gaps per stream: between launches of one thread into one stream. */
struct stream_place {
    __u64 stream;
    __u32 place;
    __u32 zero;
};

/* The launch of a call. */
struct gap_launch {
    __u64 handle; /* handle of the kernel, graph or host function; 0: not in the call's registers */
    __u32 kind;   /* kind of the call */
    __u32 zero;
};

struct gap_count {
    __u64 count;
    __u64 ns[TIME_PARTS]; /* of all gaps */
};

struct gap_owner {
    struct image image;
    struct cgroups cgroups; /* at its first call */
};

enum woken_by {
    WOKEN_BY_UNKNOWN,
    WOKEN_BY_THREAD,
    WOKEN_BY_TIMEOUT,   /* of the blocking system call */
    WOKEN_BY_SIGNAL,    /* from an interrupt: a timer's, or for I/O */
    WOKEN_BY_INTERRUPT, /* by a device, the network, or another timer */
};

/* The thread or event that ended a thread's longest block in a period, and the reason of the block. */
struct waker {
    __u32 pid;
    __u32 tid;     /* 0: no thread, or no block */
    char comm[16]; /* of the thread */
    __u64 blocked_ns;
    __u32 part;       /* part that the blocked thread was in */
    __s32 user_stack; /* stacks of the blocked thread, outside of calls, if requested; negative: unknown */
    __s32 kernel_stack;
    __u32 by;                 /* enum woken_by */
    __u64 fault;              /* address of a page fault; 0: unknown */
    char file[FILE_NAME];     /* name of a file that was read or written, possibly cut; "": unknown */
    char folder[FOLDER_NAME]; /* last folder of its path */
};

/* Parts of a thread's time in a period, and its waker. */
struct period {
    __u64 ns[TIME_PARTS];
    struct waker waker;
};

/* A period in progress. period.ns has the thread's parts at its begin. */
struct open_period {
    __u64 since; /* begin, in ns of its thread's time; 0: no period */
    struct period period;
    struct gap_launch before; /* launch before a gap */
};

/* A thread that makes no traced calls, but has woken one that does, directly or through other wakers. */
struct waking_thread {
    struct thread_time time;
    __u64 woke_ns;        /* last wake-up, CLOCK_MONOTONIC; at first, when tracking began */
    struct period open;   /* since then */
    struct period before; /* between the last two wake-ups */
    __u32 known;          /* `before` is valid */
    __u32 steps;          /* wake-ups between it and a thread that makes traced calls */
};

#define WAKERS 3 /* wake-ups that are followed back from a gap */

/* A line of -e. */
struct gap_record {
    __u32 type; /* RECORD_GAP */
    __u32 tid;
    __u64 time_ns; /* begin, CLOCK_MONOTONIC */
    struct gap_owner key;
    char comm[16]; /* of the thread */
    __u64 gap_ns;
    struct period gap; /* the parts add up to gap_ns */
    __u32 running;     /* runnable threads on the CPUs that this thread may use, at the gap's end */
    __u32 cpus;        /* 0: unknown */
    /* The thread's waker, that waker's waker, and so on, each between its last two wake-ups. */
    __u32 known; /* number of wakers */
    __u32 zero;
    struct period wakers[WAKERS];
    struct gap_launch before; /* launch before the gap */
    struct gap_launch after;
};

#endif
