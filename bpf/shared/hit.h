/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_HIT_H
#define GPUSNOOP_HIT_H

enum hit {
    HIT_ENTRY,
    HIT_RETURN,
    HITS,
};

#endif
