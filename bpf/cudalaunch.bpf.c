/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Kernel launches. Their shapes lie on the caller's stack. */
#define READS_MEMORY_OFTEN

#include "calls/launch.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
