/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_WAIT_H
#define GPUSNOOP_WAIT_H

#include "call.h"

#define WAITING_MAX 16384 /* threads that have waited, and live */

/* A thread's call that has not returned yet. */
struct waiting {
    __u64 since_ns;      /* CLOCK_MONOTONIC; 0: it does not wait now */
    struct call_key key; /* of its last wait; pid 0: the place is free */
};

#endif
