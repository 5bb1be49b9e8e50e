/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Order of accesses to words that publish other data, to the front end (src/base/shared_word.hpp) or another CPU.
 *
 * store_ordered() stores a word after all earlier stores and before all later ones. load_acquire() loads a word before
 * everything that is read later. Words have 64 bits.
 *
 * x86 reorders neither stores with stores nor loads with loads: only the compiler has to keep the order, which costs
 * nothing, while an instruction with a lock would wait until all stores have left the CPU, 100 ns. On arm64 these are
 * atomic instructions with a result, which are full barriers in all kernels (Documentation/bpf/linux-notes, 5.18).
 * Instructions for this very purpose exist only since 6.15 (880442305a39). */
#ifndef GPUSNOOP_ORDER_BPF_H
#define GPUSNOOP_ORDER_BPF_H

#include "shared/kernel.h"

#include <bpf/bpf_helpers.h>

#if defined(__TARGET_ARCH_x86)

#define store_ordered(TO, VALUE)                                                                                       \
    ({                                                                                                                 \
        barrier();                                                                                                     \
        *(volatile __u64*)(TO) = (VALUE);                                                                              \
        barrier();                                                                                                     \
    })
#define load_acquire(FROM)                                                                                             \
    ({                                                                                                                 \
        __u64 loaded_ = *(const volatile __u64*)(FROM);                                                                \
        barrier();                                                                                                     \
        loaded_;                                                                                                       \
    })

#elif defined(__TARGET_ARCH_arm64)

#define store_ordered(TO, VALUE) ((void)__sync_lock_test_and_set((__u64*)(TO), VALUE))
#define load_acquire(FROM) __sync_fetch_and_or((__u64*)(FROM), 0)

#endif

#endif
