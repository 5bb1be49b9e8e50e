/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Copies, sets and prefetches. */
#include "kinds/copy.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
