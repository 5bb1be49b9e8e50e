/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Measures the probe's part of a measured duration: the time between entry and return of a function that does nothing,
 * taken as the tools take it. */
#include "base/common.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CALIBRATION_SAMPLES 512

__u64 entered = 0;
__u32 taken = 0;
__u64 samples[CALIBRATION_SAMPLES] = {};

/* Attaching by tracefs needs this map, as in base/probe.bpf.h, although there is one probe only. */
PREALLOCATED_HASH_MAP(rows_by_place, 4, u64, u32);

/* Attached once, so always active. */
INLINE bool is_idle(struct pt_regs* ctx)
{
    return false;
}

INLINE bool becomes_active(struct pt_regs* ctx)
{
    return false;
}

INLINE bool is_switching_probes(void)
{
    return false;
}

INLINE bool returns_nested(struct pt_regs* ctx)
{
    return false;
}

INLINE int calibrate_enter(struct pt_regs* ctx)
{
    entered = bpf_ktime_get_ns();
    return 0;
}

INLINE int calibrate_leave(struct pt_regs* ctx)
{
    u64 now = bpf_ktime_get_ns();
    if (taken < CALIBRATION_SAMPLES)
        samples[taken++] = now - entered;
    return 0;
}

CALL_PROGRAMS(calibrate, calibrate_enter, calibrate_leave)
