/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Totals of launches, copies, waits and memory, by process and device. */

/* Twice the default: a synchronous copy is both a copy and a wait, and a free may also be a wait. */
#define OPEN_CALLS 8

#include "kinds/copy.bpf.h"
#include "kinds/launch.bpf.h"
#include "kinds/memory.bpf.h"
#include "kinds/wait.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
