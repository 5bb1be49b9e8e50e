/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Where the time of a thread goes. At each moment it is in one of these, so that they add up to all of its time. */
#ifndef GPUSNOOP_THREAD_TIME_H
#define GPUSNOOP_THREAD_TIME_H

#include "histogram.h"
#include "process.h"

#define PLACES_MAX 16384 /* threads that a table has, and that live */

enum time_part {
    TIME_CPU, /* on a CPU, in no call */
    /* in a call of CUDA's, on a CPU or blocked */
    TIME_LAUNCH,
    TIME_COPY,
    TIME_WAIT,
    TIME_MEMORY,
    TIME_CALL, /* any other */
    /* runnable, wherever it was */
    TIME_RUNQ,
    TIME_THROTTLED,
    /* on a CPU that has something else to do first, wherever it was; if that is asked for */
    TIME_HARDIRQ,
    TIME_SOFTIRQ,
    /* by a signal or a debugger, or frozen with its cgroup; wherever it was */
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
    TIME_ENDED = 31, /* the thread is gone, or is another program's */
};

/* What a thread is in, in the low bits of a word: where it would be without a call, and the call around that. */
#define TIME_OFF_BITS 31ULL
#define TIME_CALL_SHIFT 5
#define TIME_CALL_BITS (7ULL << TIME_CALL_SHIFT)
#define TIME_SINCE_SHIFT 8

#define CHARACTER_DEVICE_MAJORS 512 /* CHRDEV_MAJOR_MAX */

/* What a thread has had of the CPUs since it is there, as its schedstat in /proc has it. */
struct cpu_use {
    __u64 used_ns;
    __u64 waited_ns;  /* ready to run, but without one */
    __u64 timeslices; /* times that it was given one */
};

struct thread_time {
    __u64 begin_ns; /* CLOCK_MONOTONIC, of its first call; 0: the place is free */
    /* What it is in, and since when (ns after that): one word, so that whoever changes it owns what has gone by. */
    __u64 now;
    __u64 ns[TIME_PARTS]; /* up to then: together they are that time */
    /* As it was when it left its CPU last: for how long it had waited for one; the queue that it was in, and for how
     * long that had been throttled. */
    __u64 queued_before;
    __u64 clock_before; /* of the scheduler's, which is another one */
    __u64 queue;
    __u64 throttled_before;
    struct image image;
    struct cgroups cgroups;
    __u32 tid;
    __u32 other_syscall; /* the last that it was blocked in as TIME_OTHER, + 1; 0 none */
    __u32 apis;          /* bits, by enum probe_layer: of what it has called */
    __u32 collective;    /* number of the probe table's row of its last call of NCCL, if that is asked for; 0: none */
    __u64 collectives;   /* these calls */
    __u64 interrupted;   /* by a device: what it was in then */
    __u64 blocked;       /* how often it left the CPU because it had to */
    __u64 preempted;     /* ... because another one was to have it */
    __u64 faults_before; /* major ones, of its life */
    __u64 faults;
    __s32 user_stack; /* where it has blocked last, if that is asked for */
    __s32 kernel_stack;
    __u64 fault;             /* address of its last page fault, if that is asked for */
    struct cpu_use at_begin; /* where switches are not followed */
    struct cpu_use at_end;
    char comm[16]; /* of the thread, at its first call and at its end */
};

static inline __attribute__((always_inline)) int is_queued(__u32 part)
{
    return part == TIME_RUNQ || part == TIME_THROTTLED;
}

static inline __attribute__((always_inline)) int is_interrupted(__u32 part)
{
    return part == TIME_HARDIRQ || part == TIME_SOFTIRQ;
}

/* In no call. */
static inline __attribute__((always_inline)) int is_blocked(__u32 part)
{
    return part >= TIME_LOCK && part < TIME_PARTS;
}

/* TIME_ENDED where it is no more. */
static inline __attribute__((always_inline)) __u32 time_part_of(__u64 now)
{
    __u32 off = (__u32)(now & TIME_OFF_BITS), call = (__u32)((now & TIME_CALL_BITS) >> TIME_CALL_SHIFT);
    return !call || is_queued(off) || is_interrupted(off) || off == TIME_STOPPED ? off : call;
}

/* Blocks of threads that call, outside of calls, by where they are. */
#define BLOCK_FRAMES 64

struct block_key {
    __u32 place; /* of the thread, in the table of threads */
    __u32 part;
    __s32 user; /* ids of stacks; negative: not known */
    __s32 kernel;
};

struct block_count {
    __u64 sum; /* ns */
    __u64 times;
};

#define FILE_NAME 48
#define FOLDER_NAME 32

/* Of one file: blocks, by how long they were; and what disks are asked for. */
struct file_key {
    __u64 inode;
    __u32 device; /* of the kernel's super block; with the inode 0: not known */
    __u32 place;
    __u64 bucket; /* of ns; or FILE_READ, FILE_WRITTEN */
};

#define FILE_READ HISTOGRAM_BUCKETS
#define FILE_WRITTEN (HISTOGRAM_BUCKETS + 1)

struct file_count {
    __u64 sum; /* ns; or bytes */
    __u64 times;
    char file[FILE_NAME]; /* as much of its name as there is room for; "": not known */
    char folder[FOLDER_NAME];
};

#endif
