/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_THREAD_REGISTERS_H
#define GPUSNOOP_THREAD_REGISTERS_H

#include <linux/types.h>

/* A return address that a return probe (ours, or another tracer's) has taken off the stack. */
struct replaced_return {
    __u64 slot; /* where it was; 0: none */
    __u64 address;
};

#define REPLACED_RETURNS 4 /* the innermost */

/* What a thread had in its registers when it entered the kernel last: in a system call that it is in still, or at an
 * interrupt. Those that calls preserve, for only they tell of callers. */
struct thread_registers {
    __u32 process;
    __u32 thread;
    __u64 start_ns; /* CLOCK_BOOTTIME */
    __u64 ip, sp, bp, bx, r12, r13, r14, r15;
    struct replaced_return replaced[REPLACED_RETURNS];
    char comm[16];
};

#endif
