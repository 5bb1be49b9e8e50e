/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Totals of launches, copies, waits and memory, by process and device. */

/* Twice the default, because a synchronous copy is tracked both as a copy and as a wait, and a free may be a wait,
 * too. */
#define OPEN_CALLS 8

#include "kinds/copy.bpf.h"
#include "kinds/launch.bpf.h"
#include "kinds/memory.bpf.h"
#include "kinds/wait.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
