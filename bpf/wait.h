/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_WAIT_H
#define GPUSNOOP_WAIT_H

#include "call.h"

struct waiting_key {
    struct image image;
    __u64 since_ns; /* CLOCK_MONOTONIC */
    __u32 tid;
    __u32 zero;
};

/* A call that has not returned yet, or has since the last report. */
struct waiting {
    __u64 ended_ns; /* 0: not yet */
    __u64 thread_start_ns;
    struct call_key key;
};

#endif
