/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Allocations and frees. */
#include "kinds/memory.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
