/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* All calls that the other tools count. */

/* Twice the default: a synchronous copy is both a copy and a wait, and a free may also be a wait. */
#define OPEN_CALLS 8
#define SHOWS_WAITING
#define WINDOW_DEPTH 6

#include "kinds/copy.bpf.h"
#include "kinds/driver.bpf.h"
#include "kinds/launch.bpf.h"
#include "kinds/memory.bpf.h"
#include "kinds/wait.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
