/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Idioms that keep programs within the verifier's limits, each with a name. */
#ifndef GPUSNOOP_VERIFIER_BPF_H
#define GPUSNOOP_VERIFIER_BPF_H

#include "shared/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* The verifier walks through every path of a program and remembers states: what is known of each register and stack
 * slot. Where a path comes to an instruction in a state that was seen there, it ends. What tells states apart, branches
 * above all, multiplies the work for everything that follows. */

/* The usual function. Its code and its states are its caller's. */
#define INLINE static inline __attribute__((always_inline))

/* Global function: verified once, for any arguments, not once for each state of each caller. Its result is unknown to
 * the caller. Arguments are numbers, or pointers to memory of a known size that may be NULL, which it has to check.
 * Kernels from 6.10 to 6.14 refuse a call of it under guard_begin() (GUARDED_CALLS). Before 6.2 (9ef40974a82a) a
 * pointer argument is no key of a map: the key has to be copied. */
#define VERIFIED_ONCE __attribute__((noinline))

/* Static function with a stack frame of its own: what it keeps there takes room only while it runs, not as long as its
 * caller does. Before 6.13 all frames together have 512 bytes (tests/kernels/stacks.py). Rare paths are such functions,
 * too, so that common ones do not pay for their registers and stack. */
#define OWN_FRAME static __attribute__((noinline))

__u64 opaque_zero = 0;

/* The same value, of which the verifier knows nothing: states that differ in it alone become one. The compiler knows
 * nothing either, so that a mask or a check that follows stays in the code. */
INLINE u64 opaque(u64 value)
{
    return value + opaque_zero;
}

/* Makes a variable opaque, as after branches that have set it. */
#define FORGET(VARIABLE) ((VARIABLE) = opaque(VARIABLE))

/* Keeps a variable in one register up to here. Otherwise compilers check one copy and use another, or merge the value
 * into a load that follows: neither passes. */
#define PIN(VARIABLE) barrier_var(VARIABLE)

/* bpf_loop() (5.17, e6f2dd0f8067): its body is verified once. A loop without it is walked through once per round. From
 * 6.19 on the body is walked through once for each state of the stack that a round may leave behind; no account is kept
 * of maps, so what rounds change lies there. */
#define HAS_LOOPS bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)

/* Values without a branch: is_zero() and is_nonzero() (shared/histogram.h), masks of all bits or none, and constant
 * tables that are indexed without a check. */

#endif
