/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Launches, copies, waits and memory, by process and device: how much, and nothing of what kind. */

/* A synchronous copy is a copy and a wait, and what frees memory may wait, too: twice as many calls are open at once.
 */
#define OPEN_CALLS 8

#include "kinds/copy.bpf.h"
#include "kinds/launch.bpf.h"
#include "kinds/memory.bpf.h"
#include "kinds/wait.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
