/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Time that threads spend in calls and between calls. */
#include "kinds/gap.bpf.h"
#include "kinds/sched.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
