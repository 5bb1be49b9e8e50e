/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* NCCL calls, one record each, and their communicators. */
#ifndef GPUSNOOP_COLLECTIVE_H
#define GPUSNOOP_COLLECTIVE_H

#include <linux/types.h>

#include "process.h"

/* Adjacent fields of a communicator: their order is the same in NCCL 2.18 to 2.31, and in RCCL since ROCm 6.0. In older
 * versions, 8 bytes of the unique id precede the rank. They serve as the hash, because they are equal in all ranks. */
struct comm_identity {
    __u64 hash;
    __s32 rank;
    __s32 ranks;
    __s32 device; /* CUDA ordinal */
};

#define COMM_DEVICES_MAX 64

/* Flag in a cookie's word, in addition to the rank's offset / 8: from NCCL 2.21 on, communicators begin with COMM_MAGIC
 * until they are destroyed. */
#define COMM_HAS_MAGIC (1u << 23)
#define COMM_MAGIC 0x0280028002800280ULL

/* Sent when a communicator is first seen, and again when its identity is known. */
struct comm_record {
    __u32 type;   /* RECORD_COMM */
    __u32 number; /* identifies it in collective_call.comm */
    struct image image;
    struct comm_identity identity; /* ranks 0: unknown */
    __u32 made;                    /* creation was seen, so no call was missed */
};

#define COLLECTIVE_IN_PROGRESS 7 /* ncclInProgress (2.14): a result of nonblocking communicators, not a failure */

static inline __attribute__((always_inline)) int collective_failed(int result)
{
    return result && result != COLLECTIVE_IN_PROGRESS;
}

/* Reductions from this number on are user-defined; their numbers may differ between the ranks of a communicator. */
#define COLLECTIVE_OWN_REDUCTION 5

/* Sent when a call returns, unless it is nested in another one. Calls that create or query communicators are sent only
 * if they fail. */
struct collective_call {
    __u32 type; /* RECORD_COLLECTIVE */
    __u32 row;  /* number of its row in the probe table */
    __u32 pid;
    __u32 tid;
    __u32 comm;     /* 0: none */
    __u32 sequence; /* number of the call in its communicator, from 1 on; a gap means lost records; 0: not numbered */
    __s32 result;
    __u8 data_type;    /* enum ncclDataType_t */
    __u8 reduction;    /* enum ncclRedOp_t; COLLECTIVE_OWN_REDUCTION for all user-defined ones */
    __u8 captured;     /* recorded into a graph, not executed */
    __u8 asynchronous; /* the result is a communicator's later error, not the call's return value */
    __u64 entry_ns;    /* CLOCK_MONOTONIC */
    __u64 duration_ns;
    __u64 elements;
    __u64 stream; /* set if streams are requested */
    __u32 root;   /* rank; only for calls that have a root */
    __s32 stack;  /* id of the caller's stack in call_stacks; negative: none */
    char thread_name[16];
};

/* Sent when a wait for the device returns. The collectives that were waited for are done, so all ranks have reached
 * them. */
struct waited_record {
    __u32 type; /* RECORD_WAITED */
    __u32 pid;
    __u32 tid;
    __u32 zero;
    __u64 begin_ns;
    __u64 end_ns;
};

#endif
