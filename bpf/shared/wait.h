/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Waits in progress, in one slot per thread, and the outermost call of each thread. */
#ifndef GPUSNOOP_WAIT_H
#define GPUSNOOP_WAIT_H

#include <linux/types.h>

#include "call.h"
#include "process.h"
#include "thread_time.h"

#define LONG_WAIT_NS 1000000000ULL
#define STACK_EVERY_NS 10000000ULL /* time that a thread waits between two sampled stacks */

/* A call that is waiting or has waited. */
struct wait_call {
    __u64 since_ns; /* start of the call, CLOCK_MONOTONIC; 0: no call */
    __u64 ended_ns; /* end of the call; 0: it has not returned */
    struct call_key key;
};

/* The slot of a thread in the table of waits. */
struct waiting {
    __u64 thread_start_ns; /* start of the thread, CLOCK_BOOTTIME; 0: the slot is free */
    struct wait_call now;
    struct wait_call spanning[2]; /* calls that were in progress at a report and have returned since, one for each of
                                     the last two reports; index: lowest bit of reported_ns */
};

/* A thread's outermost call, kept until it returns (base/front_calls.bpf.h). */
#define FRONT_CALLS 2048 /* number of slots, a power of two */
#define FRONT_CALL_WORDS 15

struct front_call {
    __u64 stack; /* stack pointer at entry; 0: no call */
    __u64 entry_ns;
    __u64 word[FRONT_CALL_WORDS]; /* each program defines the meaning of these words */
    __u64 owner;                  /* the thread that owns the slot (front_owner()); 0: the slot is free */
    __u64 shared;                 /* nonzero if a thread found this slot occupied, and so uses a later slot */
    struct image image;           /* image of the owner; the front end frees the slot if the owner is killed */
};

#endif
