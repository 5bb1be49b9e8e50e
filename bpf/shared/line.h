/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The lines of -e, one after the other in an array that the front end reads as memory. */
#ifndef GPUSNOOP_LINE_H
#define GPUSNOOP_LINE_H

#include "call.h"

/* The place of line N is element 1 + N modulo their number. */
struct line {
    __u64 whole; /* N + 1 once line N is in this place */
    struct call_event event;
};

/* In element 0: how far they are. */
struct line_ends {
    __u64 sent; /* lines that have been given a place. Changed by the kernel side */
    __u64 elsewhere[15];
    __u64 taken; /* lines that have been read: their places are free. Changed by the front end */
};

#endif
