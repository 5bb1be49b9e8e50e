/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Kernel launches. */
#include "calls/launch.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
