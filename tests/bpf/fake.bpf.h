/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Replaces the probes of a BPF object by programs that BPF_PROG_TEST_RUN can run (tests/bpf/fake_run.hpp). Included
 * before the first line of the object's source. */
#ifndef GPUSNOOP_FAKE_BPF_H
#define GPUSNOOP_FAKE_BPF_H

#include <linux/types.h>

/* The probe hit that the programs see. */
struct fake_hit {
    __u64 cookie;                /* returned by bpf_get_attach_cookie() */
    __s64 stack;                 /* returned by bpf_get_stackid() */
    unsigned long registers[36]; /* struct pt_regs */
};

#if defined(__bpf__)

/* In a map of its own, so that the layout of the object's other variables stays the same. */
struct fake_hit fake __attribute__((section(".data.fake"), used));

#define bpf_get_attach_cookie(CTX) (fake.cookie)
#define bpf_get_stackid(CTX, MAP, FLAGS) ((void)(CTX), (void)(MAP), (int)fake.stack)

#define PROBE_PROGRAM(NAME)                                                                                            \
    static inline __attribute__((always_inline)) int NAME##_at(struct pt_regs* ctx);                                   \
    __attribute__((section("raw_tp"), used)) int NAME(void* unused)                                                    \
    {                                                                                                                  \
        return NAME##_at((struct pt_regs*)fake.registers);                                                             \
    }                                                                                                                  \
    static inline __attribute__((always_inline)) int NAME##_at(struct pt_regs* ctx)

#endif

#endif
