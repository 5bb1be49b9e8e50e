/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Probes on single processes may be replaced by probes on every process while calls go on (bpf/base/probe.bpf.h). */
#ifndef GPUSNOOP_ATTACH_H
#define GPUSNOOP_ATTACH_H

/* In a probe's cookie, above its number: it belongs to the second attachment; whose of the tool's hooks it is. */
#define COOKIE_SECOND 0x80000000u
#define COOKIE_HOOK_SHIFT 32
#define HOOKS_MAX 64
/* ... and a word of the file: the number of a driver, CUDA's or HIP's; of NCCL, where in a communicator its identity
 * is, divided by 8. */
#define COOKIE_OF_DRIVER (1ULL << 39)
#define COOKIE_WORD_SHIFT 40
#define COOKIE_WORD_MAX ((1u << 24) - 1)

/* Which attachment counts. */
enum attach_phase {
    ATTACH_FIRST = 0,
    ATTACH_COMING = 1, /* the first; the second is being made */
    ATTACH_BOTH = 2,   /* the second, and the first what the second has not seen */
    ATTACH_SECOND = COOKIE_SECOND,
};

#endif
