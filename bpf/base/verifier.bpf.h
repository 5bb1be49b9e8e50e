/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Idioms that keep programs within the limits of the BPF verifier. Other files use them without explaining them. */
#ifndef GPUSNOOP_VERIFIER_BPF_H
#define GPUSNOOP_VERIFIER_BPF_H

#include "shared/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* The verifier walks every path of a program and remembers states. A state is what it knows about each register and
 * stack slot. It stops following a path at an instruction that it has already verified in the same state. So everything
 * that makes states differ, above all branches, multiplies the work for the code that follows. */

/* The default for functions. The code is inlined, so it is verified again in each caller. */
#define INLINE static inline __attribute__((always_inline))

/* Global function: verified once for any arguments, instead of once per state of each caller. The verifier knows
 * nothing about its result. Arguments are numbers, or pointers to memory of a known size; the function must check them
 * for NULL. Kernels from 6.10 to 6.14 reject such a call if preemption is disabled (see GUARDED_CALLS). Before 6.2
 * (9ef40974a82a), a pointer argument cannot be used as a map key; such functions copy the key to their own stack. */
#define VERIFIED_ONCE __attribute__((noinline))

/* Static function that is not inlined, so its stack frame occupies stack only while the function runs. Before 6.13, the
 * frames of a call chain may have 512 bytes in total (tests/kernels/stacks.py). Also used for rare paths, so that they
 * do not take registers and stack from the common paths. */
#define OWN_FRAME static __attribute__((noinline))

__u64 opaque_zero = 0;

/* Hides a value from the verifier, so states that differ only in this value become equal. The value is also hidden from
 * the compiler, which therefore does not remove later masks or checks. */
INLINE u64 opaque(u64 value)
{
    return value + opaque_zero;
}

/* Hides the value of a variable from the verifier and the compiler, usually after branches that set it to different
 * values. */
#define FORGET(VARIABLE) ((VARIABLE) = opaque(VARIABLE))

/* Keeps a variable in one register up to this point. Otherwise the compiler may check one copy of the value and use
 * another, or fold the value into a later load. The verifier rejects both. */
#define PIN(VARIABLE) barrier_var(VARIABLE)

/* True if the kernel has bpf_loop() (5.17, e6f2dd0f8067). The verifier walks the body of a plain loop once per
 * iteration, but the body of bpf_loop() only once. From 6.19 on, it walks the body of bpf_loop() once for each stack
 * state that an iteration may leave behind. The verifier does not track the contents of maps, so state that changes
 * between iterations is kept in maps and task storage. */
#define HAS_LOOPS bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)

/* Branch-free code uses is_zero() and is_nonzero() (shared/histogram.h), masks with either all bits set or none, and
 * constant tables that are indexed without a bounds check. */

#endif
