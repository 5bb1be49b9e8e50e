/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Kernel launches. */
#include "kinds/launch.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
