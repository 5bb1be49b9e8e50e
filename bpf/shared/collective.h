/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Calls of NCCL, one record each, and the communicators that they are of. */
#ifndef GPUSNOOP_COLLECTIVE_H
#define GPUSNOOP_COLLECTIVE_H

#include <linux/types.h>

#include "process.h"

/* In a communicator, in front of the rank and from there on: the same order in NCCL 2.18 to 2.31 and RCCL since ROCm
 * 6.0. Before that the hash is 8 bytes of the unique id, which do as well: they are the same in all ranks, too. */
struct comm_identity {
    __u64 hash;
    __s32 rank;
    __s32 ranks;
    __s32 device; /* as CUDA numbers it */
};

#define COMM_DEVICES_MAX 64

/* In a cookie's word, beside the eighth of the rank's offset: communicators begin with COMM_MAGIC (NCCL 2.21) until
 * they are destroyed. */
#define COMM_HAS_MAGIC (1u << 23)
#define COMM_MAGIC 0x0280028002800280ULL

/* Sent when a communicator is first seen, and again once it is known which it is. */
struct comm_record {
    __u32 type;   /* RECORD_COMM */
    __u32 number; /* by which calls name it */
    struct image image;
    struct comm_identity identity; /* ranks 0: unknown */
    __u32 made;                    /* was seen being made: none of its calls is missed */
};

#define COLLECTIVE_IN_PROGRESS 7 /* ncclInProgress, of communicators that do not block: no failure; 2.14 */

static inline __attribute__((always_inline)) int collective_failed(int result)
{
    return result && result != COLLECTIVE_IN_PROGRESS;
}

#define COLLECTIVE_OWN_REDUCTION 5 /* and above: numbers that a communicator's ranks need not have in common */

/* Sent when a call returns, unless it is part of another one; of those that make communicators or ask about one, when
 * they fail. */
struct collective_call {
    __u32 type; /* RECORD_COLLECTIVE */
    __u32 row;  /* number of its row in the probe table */
    __u32 pid;
    __u32 tid;
    __u32 comm;     /* 0: of none */
    __u32 sequence; /* of the communicator's calls, from 1 on: a gap is what was lost; 0: not one of these */
    __s32 result;
    __u8 data_type;    /* enum ncclDataType_t */
    __u8 reduction;    /* enum ncclRedOp_t, COLLECTIVE_OWN_REDUCTION of all that are made by the program */
    __u8 captured;     /* into a graph: not executed */
    __u8 asynchronous; /* the result is what became of a communicator later, not what the call returned */
    __u64 entry_ns;    /* CLOCK_MONOTONIC */
    __u64 duration_ns;
    __u64 elements;
    __u64 stream; /* where it is asked for */
    __u32 root;   /* of those that have one */
    __s32 stack;  /* of the caller, in call_stacks; negative: none */
    char thread_name[16];
};

/* Sent when a wait for the device returns: what its stream had before is done, so all ranks have come to that. */
struct waited_record {
    __u32 type; /* RECORD_WAITED */
    __u32 pid;
    __u32 tid;
    __u32 zero;
    __u64 begin_ns;
    __u64 end_ns;
};

#endif
