/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Time of threads between calls and in calls. */
#include "kinds/gap.bpf.h"
#include "kinds/sched.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
