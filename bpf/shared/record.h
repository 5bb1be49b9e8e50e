/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The first word of everything in the ring buffer. */
#ifndef GPUSNOOP_RECORD_H
#define GPUSNOOP_RECORD_H

enum record_type {
    RECORD_NAME = 1,
    RECORD_PROCESS,
    RECORD_CALL,          /* one line of -e */
    RECORD_SPILL,         /* a call whose row found no room in the table: same body as RECORD_CALL */
    RECORD_REPLACED,      /* what was held at an address that has been given out again */
    RECORD_EXEC_ENDED,    /* what executed a graph is destroyed */
    RECORD_CONTEXT_ENDED, /* what it held has gone with it */
    RECORD_XID,           /* the driver reports an error of a GPU */
    RECORD_GAP,           /* one line of cudagap -e */
    RECORD_COMM,          /* a communicator of NCCL */
    RECORD_COLLECTIVE,    /* a call of NCCL */
    RECORD_WAITED,        /* a thread has waited for the device */
    RECORD_PYTHON_CODE,   /* code of Python, in a stack for the first time */
    RECORD_STACK_COPY,    /* the stack's bytes, where its id is new */
};

#endif
