/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Measures the time that probes add to a measured duration. It is the duration of an empty function, measured in the
 * same way as the tools measure calls. */
#include "base/common.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CALIBRATION_SAMPLES 512

__u64 entered = 0;
__u32 taken = 0;
__u64 samples[CALIBRATION_SAMPLES] = {};

/* The front end expects this map (base/probe.bpf.h) when it attaches probes through tracefs. */
PREALLOCATED_HASH_MAP(rows_by_place, 4, u64, u32);

/* There is only one attachment (base/probe.bpf.h), so the probe always counts. */
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
