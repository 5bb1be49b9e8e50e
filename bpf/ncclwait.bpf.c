/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* NCCL calls. */
#include "kinds/nccl.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
