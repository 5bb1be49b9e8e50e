/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A gap: from the end of a call that launches to the begin of its thread's next one. */
#ifndef GPUSNOOP_GAP_H
#define GPUSNOOP_GAP_H

#include "thread_time.h"

/* Gaps of one thread, by how long they are. */
struct gap_key {
    __u32 place; /* of the thread, in the table of threads */
    __u32 bucket;
};

struct gap_count {
    __u64 count;
    __u64 ns[TIME_PARTS]; /* of all of them */
};

struct gap_owner {
    struct image image;
    struct cgroups cgroups; /* of its first call */
};

/* A line of -e. */
struct gap_record {
    __u32 type; /* RECORD_GAP */
    __u32 tid;
    __u64 time_ns; /* CLOCK_MONOTONIC at its begin */
    struct gap_owner key;
    char comm[16]; /* of the thread */
    __u64 gap_ns;
    __u64 ns[TIME_PARTS]; /* together they are that time */
};

#endif
