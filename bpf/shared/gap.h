/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A gap: from the end of a call that launches to the begin of its thread's next one. */
#ifndef GPUSNOOP_GAP_H
#define GPUSNOOP_GAP_H

#include "thread_time.h"

/* Gaps of one thread, by how long they are. */
struct gap_key {
    __u32 place; /* of the thread, in the table of threads */
    __u32 bucket;
    __u64 stream; /* 0 where streams are not told apart */
};

/* What gaps are between where streams are told apart: launches of one thread into one stream. */
struct stream_place {
    __u64 stream;
    __u32 place;
    __u32 zero;
};

/* What a call launches. */
struct gap_launch {
    __u64 handle; /* of the kernel, the graph or the host function; 0: it is not in the call's registers */
    __u32 kind;   /* of the call */
    __u32 zero;
};

struct gap_count {
    __u64 count;
    __u64 ns[TIME_PARTS]; /* of all of them */
};

struct gap_owner {
    struct image image;
    struct cgroups cgroups; /* of its first call */
};

enum woken_by {
    WOKEN_BY_UNKNOWN,
    WOKEN_BY_THREAD,
    WOKEN_BY_TIMEOUT,   /* of the system call that blocks */
    WOKEN_BY_SIGNAL,    /* from an interrupt: of a timer, or for I/O */
    WOKEN_BY_INTERRUPT, /* of a device, the network, or another timer */
};

/* The thread or event that ended the longest block of a thread within a period, and the reason of that block. */
struct waker {
    __u32 pid;
    __u32 tid;     /* 0: no thread, or there was no block */
    char comm[16]; /* of the thread */
    __u64 blocked_ns;
    __u32 part;       /* that the blocked one was in */
    __s32 user_stack; /* its own, outside of calls, if that is asked for; negative: not known */
    __s32 kernel_stack;
    __u32 by;                 /* enum woken_by */
    __u64 fault;              /* address, of a page fault; 0: not known */
    char file[FILE_NAME];     /* of a read or write: its name, as much of it as there is room for; "": not known */
    char folder[FOLDER_NAME]; /* the last one of its path */
};

/* What a thread did in some time. */
struct period {
    __u64 ns[TIME_PARTS];
    struct waker waker;
};

/* A period that goes on: the thread's parts are those of its begin. */
struct open_period {
    __u64 since; /* in ns of its thread's time; 0: there is none */
    struct period period;
    struct gap_launch before; /* of a gap */
};

/* A thread that calls nothing, and has woken one that calls, or one of these. */
struct waking_thread {
    struct thread_time time;
    __u64 woke_ns;        /* CLOCK_MONOTONIC, when it did so last; at first, since when it is followed */
    struct period open;   /* since then */
    struct period before; /* from when it did so before, to then */
    __u32 known;          /* that there is one */
    __u32 steps;          /* from a thread that calls */
};

#define WAKERS 3 /* steps that are gone back from a gap */

/* A line of -e. */
struct gap_record {
    __u32 type; /* RECORD_GAP */
    __u32 tid;
    __u64 time_ns; /* CLOCK_MONOTONIC at its begin */
    struct gap_owner key;
    char comm[16]; /* of the thread */
    __u64 gap_ns;
    struct period gap; /* together its parts are that time */
    __u32 running;     /* threads that ran or could run, on the CPUs that this one may use, at the gap's end */
    __u32 cpus;        /* 0: not known */
    /* The one that woke the thread, the one that woke that one, ...: from when each of them had done so before. */
    __u32 known; /* how many */
    __u32 zero;
    struct period wakers[WAKERS];
    struct gap_launch before; /* that the gap follows */
    struct gap_launch after;
};

#endif
