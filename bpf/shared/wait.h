/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_WAIT_H
#define GPUSNOOP_WAIT_H

#include "call.h"
#include "places.h"

#define LONG_WAIT_NS 1000000000ULL
#define STACK_EVERY_NS 10000000ULL /* of a thread's waiting, where stacks are taken of some waits */

/* A call that waits, or has waited. */
struct wait_call {
    __u64 since_ns; /* CLOCK_MONOTONIC; 0: none */
    __u64 ended_ns; /* 0: not yet */
    struct call_key key;
};

/* The place of a thread. */
struct waiting {
    __u64 thread_start_ns; /* CLOCK_BOOTTIME; 0: the place is free */
    struct wait_call now;
    struct wait_call spanning[2]; /* calls that returned after reports had fallen into them: by even and odd reports */
};

#endif
