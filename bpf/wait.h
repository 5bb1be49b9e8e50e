/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_WAIT_H
#define GPUSNOOP_WAIT_H

#include "call.h"

/* A call that has not returned yet. */
struct waiting {
    __u64 since_ns; /* CLOCK_MONOTONIC */
    struct call_key key;
};

#endif
