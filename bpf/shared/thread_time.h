/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Parts into which a thread's time is divided, such as launch calls, waits for a CPU, and disk I/O. Each moment counts
 * for exactly one part, so the parts add up to the total time. */
#ifndef GPUSNOOP_THREAD_TIME_H
#define GPUSNOOP_THREAD_TIME_H

#include "histogram.h"
#include "process.h"

#define PLACES_MAX 16384 /* slots in a table of threads (base/places.bpf.h); each live thread takes one */

enum time_part {
    TIME_CPU, /* on a CPU, in no call */
    /* in a CUDA call, on a CPU or blocked */
    TIME_LAUNCH,
    TIME_COPY,
    TIME_WAIT,
    TIME_MEMORY,
    TIME_CALL, /* in any other call */
    /* runnable, in a call or not */
    TIME_RUNQ,
    TIME_THROTTLED,
    /* interrupted on its CPU, in a call or not; measured only if requested */
    TIME_HARDIRQ,
    TIME_SOFTIRQ,
    /* stopped by a signal or a debugger, or frozen with its cgroup; in a call or not */
    TIME_STOPPED,
    /* blocked, in no call */
    TIME_LOCK,
    TIME_POLL,
    TIME_PIPE,
    TIME_SOCKET,
    TIME_DISK,
    TIME_FAULT,
    TIME_SLEEP,
    TIME_DRIVER,
    TIME_CHILD,
    TIME_OTHER,
    TIME_PARTS,
    TIME_ENDED = 31, /* the thread has exited or has executed another program */
};

/* The low bits of thread_time.now hold a thread's current state as two values of enum time_part. TIME_CALL_BITS hold
 * the kind of call that the thread is in (TIME_LAUNCH to TIME_CALL), or 0 if it is in no call. TIME_OFF_BITS hold what
 * the thread does regardless of calls, for example TIME_CPU or TIME_LOCK. time_part_of() combines the two. */
#define TIME_OFF_BITS 31ULL
#define TIME_CALL_SHIFT 5
#define TIME_CALL_BITS (7ULL << TIME_CALL_SHIFT)
#define TIME_SINCE_SHIFT 8

#define CHARACTER_DEVICE_MAJORS 512 /* CHRDEV_MAJOR_MAX */

/* CPU use of a thread since its start, as in /proc/.../schedstat. */
struct cpu_use {
    __u64 used_ns;
    __u64 waited_ns;  /* time that the thread was runnable, but had no CPU */
    __u64 timeslices; /* number of times that the thread got a CPU */
};

struct thread_time {
    __u64 begin_ns; /* time of the thread's first call, CLOCK_MONOTONIC; 0: the slot is free */
    /* Current state, and its start in ns after begin_ns. Both are in one word, which changes in one atomic operation.
     * Only the program whose operation succeeds adds the elapsed time. */
    __u64 now;
    __u64 ns[TIME_PARTS]; /* total time in each part, without the current state; the sum of all parts is the start of
                             the current state */
    /* Values at the moment when the thread last left its CPU. */
    __u64 queued_before;    /* total time that the thread had waited for a CPU */
    __u64 clock_before;     /* clock of the run queue */
    __u64 queue;            /* address of the run queue */
    __u64 throttled_before; /* throttled time of the run queue */
    struct image image;
    struct cgroups cgroups;
    __u32 tid;
    __u32 other_syscall; /* 1 + the number of the last system call whose blocked time counts as TIME_OTHER; 0: none */
    __u32 apis;          /* API layers that the thread has called, one bit per value of enum probe_layer */
    __u32 collective;    /* row in the probe table of the last NCCL function that it called; 0: none, or not traced */
    __u64 collectives;   /* number of NCCL calls */
    __u64 interrupted; /* what the thread did when the last hardware interrupt began: the TIME_OFF_BITS of `now` at that
                          moment */
    __u64 blocked;     /* number of times that it left its CPU to wait */
    __u64 preempted;   /* number of times that it left its CPU for another thread */
    __u64 faults_before; /* major page faults before its first call */
    __u64 faults;        /* major page faults since its first call */
    __s32 user_stack;    /* ids of the thread's stacks when it last blocked, if requested */
    __s32 kernel_stack;
    __u64 fault; /* address of its last page fault, if requested */
    /* CPU use at the thread's first call, and at its exit; set only if context switches are not traced. */
    struct cpu_use at_begin;
    struct cpu_use at_end;
    char comm[16]; /* name at its first call, updated when it exits */
};

static inline __attribute__((always_inline)) int is_queued(__u32 part)
{
    return part == TIME_RUNQ || part == TIME_THROTTLED;
}

static inline __attribute__((always_inline)) int is_interrupted(__u32 part)
{
    return part == TIME_HARDIRQ || part == TIME_SOFTIRQ;
}

/* True for parts in which the thread is blocked outside of calls. */
static inline __attribute__((always_inline)) int is_blocked(__u32 part)
{
    return part >= TIME_LOCK && part < TIME_PARTS;
}

/* Returns the part to which time in the state `now` is added, or TIME_ENDED if the thread has exited. */
static inline __attribute__((always_inline)) __u32 time_part_of(__u64 now)
{
    __u32 off = (__u32)(now & TIME_OFF_BITS), call = (__u32)((now & TIME_CALL_BITS) >> TIME_CALL_SHIFT);
    return !call || is_queued(off) || is_interrupted(off) || off == TIME_STOPPED ? off : call;
}

#define BLOCK_FRAMES 64

/* Key of the time that a thread was blocked outside of calls, with one user stack and one kernel stack. */
struct block_key {
    __u32 place; /* the thread's index in the table of threads */
    __u32 part;
    __s32 user; /* ids of the user stack and the kernel stack; negative: unknown */
    __s32 kernel;
};

struct block_count {
    __u64 sum; /* blocked time in ns */
    __u64 times;
};

#define FILE_NAME 48
#define FOLDER_NAME 32

/* Key of one of a thread's counters for one file: histogram bucket of the blocked time, disk reads, or disk writes. */
struct file_key {
    __u64 inode;
    __u32 device; /* s_dev of the file's superblock; if `inode` is 0, the file is unknown */
    __u32 place;
    __u64 bucket; /* histogram bucket of the blocked time in ns, or FILE_READ or FILE_WRITTEN for disk I/O */
};

#define FILE_READ HISTOGRAM_BUCKETS
#define FILE_WRITTEN (HISTOGRAM_BUCKETS + 1)

struct file_count {
    __u64 sum; /* blocked time in ns; for disk I/O, bytes */
    __u64 times;
    char file[FILE_NAME]; /* names of the file and its folder, possibly truncated; empty: unknown */
    char folder[FOLDER_NAME];
};

#endif
