/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Gaps: the time from the end of a launching call to the start of the thread's next launching call. */
#ifndef GPUSNOOP_GAP_H
#define GPUSNOOP_GAP_H

#include "thread_time.h"

/* Key of the gaps of one thread whose lengths are in the same histogram bucket. */
struct gap_key {
    __u32 place; /* the thread's index in the table of threads */
    __u32 bucket;
    __u64 stream; /* 0 if gaps are not measured per stream */
};

/* Key of the open gap of one thread and stream, if gaps are measured per stream. Such a gap is between two launches by
 * the same thread into the same stream. */
struct stream_place {
    __u64 stream;
    __u32 place;
    __u32 zero;
};

/* The kernel, graph or host function that a call launched. */
struct gap_launch {
    __u64 handle; /* handle of the kernel or graph; 0: unknown, because the call does not pass it in a register */
    __u32 kind;   /* enum probe_kind */
    __u32 zero;
};

struct gap_count {
    __u64 count;
    __u64 ns[TIME_PARTS]; /* time in each part (enum time_part), summed over all gaps */
};

struct gap_owner {
    struct image image;
    struct cgroups cgroups; /* cgroups at the thread's first call */
};

enum woken_by {
    WOKEN_BY_UNKNOWN,
    WOKEN_BY_THREAD,
    WOKEN_BY_TIMEOUT,   /* timeout of the system call in which the thread blocked */
    WOKEN_BY_SIGNAL,    /* signal that an interrupt handler sent because of a timer or I/O */
    WOKEN_BY_INTERRUPT, /* interrupt from a device, the network, or a timer that is not the thread's timeout */
};

/* The longest time for which a thread was blocked during a period: the reason, and the thread that woke the blocked
 * thread (the waker). */
struct waker {
    __u32 pid;
    __u32 tid;     /* thread id of the waker; 0: no thread woke the blocked thread, or the thread was not blocked */
    char comm[16]; /* name of the waker; valid only if `tid` is not 0 */
    __u64 blocked_ns;
    __u32 part;       /* reason for the blocked time: enum time_part */
    __s32 user_stack; /* ids of the blocked thread's stacks; valid only if stacks are requested and is_blocked(part);
                         negative: unknown */
    __s32 kernel_stack;
    __u32 by;                 /* enum woken_by */
    __u64 fault;              /* address of the page fault that blocked the thread; 0: none, or unknown */
    char file[FILE_NAME];     /* name of the file that was read or written, possibly truncated; "": unknown */
    char folder[FOLDER_NAME]; /* last folder of the file's path */
};

/* The time that a thread spent in each part (enum time_part) during a period, and the waker that ended its longest
 * blocked time. */
struct period {
    __u64 ns[TIME_PARTS];
    struct waker waker;
};

/* A period in progress. Until the period ends, period.ns holds the thread's totals at the start of the period. */
struct open_period {
    __u64 since; /* start, in ns after thread_time.begin_ns; 0: no period */
    struct period period;
    struct gap_launch before; /* the launch before the gap */
};

/* A thread that makes no traced calls, but has woken a thread that does, directly or through other wakers. Only
 * wake-ups that belong to such a chain are recorded. */
struct waking_thread {
    struct thread_time time;
    __u64 woke_ns;        /* CLOCK_MONOTONIC time of the last recorded wake-up; before the first wake-up, time at which
                             tracking began */
    struct period open;   /* period in progress, which began at woke_ns */
    struct period before; /* period between the last two recorded wake-ups */
    __u32 known;          /* nonzero if `before` is valid */
    __u32 steps; /* number of wake-ups in the shortest known chain from this thread to one that makes traced calls */
};

#define WAKERS 3 /* at most this many wake-ups are traced back from a gap */

/* A gap, printed as one line by cudagap -e. */
struct gap_record {
    __u32 type; /* RECORD_GAP */
    __u32 tid;
    __u64 time_ns; /* start of the gap, CLOCK_MONOTONIC */
    struct gap_owner key;
    char comm[16]; /* name of the thread */
    __u64 gap_ns;
    struct period gap; /* the time in each part, and the waker; the times add up to gap_ns */
    __u32 running;     /* number of runnable threads at the gap's end on the CPUs that this thread may use */
    __u32 cpus;        /* number of these CPUs; 0: unknown */
    /* The chain of wakers: the thread that woke this thread, the thread that woke that waker, and so on. Each element
     * shows how one waker spent the time between the last two recorded times that it woke a thread. */
    __u32 known; /* number of valid elements in `wakers` */
    __u32 zero;
    struct period wakers[WAKERS];
    struct gap_launch before; /* launches before and after the gap */
    struct gap_launch after;
};

#endif
