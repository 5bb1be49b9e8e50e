/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Records of NCCL calls and of communicators. */
#ifndef GPUSNOOP_COLLECTIVE_H
#define GPUSNOOP_COLLECTIVE_H

#include <linux/types.h>

#include "process.h"

/* Adjacent fields in NCCL's struct for a communicator. Their order is the same in NCCL 2.18 to 2.31, and in RCCL since
 * ROCm 6.0. In older versions, the 8 bytes before the rank are a part of the unique id. We use these bytes as the hash,
 * because they are the same in all ranks. */
struct comm_identity {
    __u64 hash;
    __s32 rank;
    __s32 ranks;
    __s32 device; /* CUDA ordinal */
};

#define COMM_DEVICES_MAX 64

/* Flag in the upper word of a probe's cookie (COOKIE_WORD_SHIFT). For NCCL, the word also holds the offset of the rank
 * in a communicator, divided by 8. The flag is set for NCCL 2.21 and later, where the struct of a communicator begins
 * with COMM_MAGIC until the communicator is destroyed. */
#define COMM_HAS_MAGIC (1u << 23)
#define COMM_MAGIC 0x0280028002800280ULL

/* Sent when a communicator is first seen, and again when its identity is known. */
struct comm_record {
    __u32 type;   /* RECORD_COMM */
    __u32 number; /* our id for the communicator, also used in collective_call.comm */
    struct image image;
    struct comm_identity identity; /* if `ranks` is 0, the identity is unknown */
    __u32 made; /* nonzero if the communicator's creation was seen, so that all of its calls were seen */
};

/* ncclInProgress (since NCCL 2.14): a call on a nonblocking communicator has not finished. This is not a failure. */
#define COLLECTIVE_IN_PROGRESS 7

static inline __attribute__((always_inline)) int collective_failed(int result)
{
    return result && result != COLLECTIVE_IN_PROGRESS;
}

/* This and higher numbers are user-defined reductions; the ranks of a communicator may use different numbers for the
 * same reduction. */
#define COLLECTIVE_OWN_REDUCTION 5

/* Sent when a call returns, unless it is nested in another call. Calls that create a communicator are sent only if they
 * fail. Queries of a communicator are sent only if they fail or return a new error of the communicator. */
struct collective_call {
    __u32 type; /* RECORD_COLLECTIVE */
    __u32 row;  /* number of the function's row in the probe table */
    __u32 pid;
    __u32 tid;
    __u32 comm;     /* our id for the communicator; 0: none */
    __u32 sequence; /* number of the call among the communicator's calls, from 1 on; a missing number is a lost record;
                       0: not numbered */
    __s32 result;
    __u8 data_type;    /* enum ncclDataType_t */
    __u8 reduction;    /* enum ncclRedOp_t; COLLECTIVE_OWN_REDUCTION for all user-defined ones */
    __u8 captured;     /* nonzero if the call was recorded into a graph, not executed */
    __u8 asynchronous; /* nonzero if `result` is a later error of the communicator, not the call's return value */
    __u64 entry_ns;    /* CLOCK_MONOTONIC */
    __u64 duration_ns;
    __u64 elements;
    __u64 stream; /* filled in only if streams are requested */
    __u32 root;   /* root rank, for calls that have one */
    __s32 stack;  /* id of the caller's stack; negative: none */
    char thread_name[16];
};

/* Sent when a wait for the device returns. The collectives that the thread waited for are then done, so all ranks have
 * reached them. */
struct waited_record {
    __u32 type; /* RECORD_WAITED */
    __u32 pid;
    __u32 tid;
    __u32 zero;
    __u64 begin_ns;
    __u64 end_ns;
};

#endif
