/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* All calls that the other tools count. */

/* Twice the default, because a synchronous copy is tracked both as a copy and as a wait, and a free may be a wait,
 * too. */
#define OPEN_CALLS 8
#define SHOWS_WAITING
#define WINDOW_DEPTH 6

#include "kinds/copy.bpf.h"
#include "kinds/driver.bpf.h"
#include "kinds/launch.bpf.h"
#include "kinds/memory.bpf.h"
#include "kinds/wait.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
