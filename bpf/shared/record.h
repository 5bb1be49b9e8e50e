/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Record types: the first word of each record in the ring buffer. */
#ifndef GPUSNOOP_RECORD_H
#define GPUSNOOP_RECORD_H

enum record_type {
    RECORD_NAME = 1,
    RECORD_PROCESS,
    RECORD_CALL,          /* a call, printed as one line by option -e */
    RECORD_SPILL,         /* a call for which the table had no room; same struct as RECORD_CALL */
    RECORD_REPLACED,      /* an allocation whose address was allocated again */
    RECORD_EXEC_ENDED,    /* an executable graph was destroyed */
    RECORD_CONTEXT_ENDED, /* a context ended, with all its memory */
    RECORD_XID,           /* a GPU error that the driver reported */
    RECORD_GAP,           /* a gap, printed as one line by cudagap -e */
    RECORD_COMM,          /* an NCCL communicator */
    RECORD_COLLECTIVE,    /* an NCCL call */
    RECORD_WAITED,        /* a thread's wait for the device has returned */
    RECORD_PYTHON_CODE,   /* a Python code object, first seen in a stack */
    RECORD_STACK_COPY,    /* a copy of the bytes of a stack */
};

#endif
