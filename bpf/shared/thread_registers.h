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

/* Registers that calls preserve, for only they tell of callers. */
#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#define KEPT_REGISTERS 6 /* rbp, rbx, r12 to r15 */
#else
#define KEPT_REGISTERS 12 /* x19 to x30: the last one is the return address, as long as no call has changed it */
#endif

/* What a thread had in its registers when it entered the kernel last: in a system call that it is in still, or at an
 * interrupt. */
struct thread_registers {
    __u32 process;
    __u32 thread;
    __u64 start_ns; /* CLOCK_BOOTTIME */
    __u64 ip, sp;
    __u64 kept[KEPT_REGISTERS];
    struct replaced_return replaced[REPLACED_RETURNS];
    char comm[16];
};

#endif
