/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Keys of tries that are addresses and handles. */
#ifndef GPUSNOOP_PLACE_BPF_H
#define GPUSNOOP_PLACE_BPF_H

#include "base/common.bpf.h"
#include "shared/memory.h"

INLINE struct place_key place_key(struct image image, u32 epoch, u64 number)
{
    return (struct place_key){.prefix = WHOLE_PLACE, .image = image, .epoch = epoch, .number = number};
}

#endif
