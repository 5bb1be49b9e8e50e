/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Where the time of threads goes that call. */
#include "calls/gap.bpf.h"
#include "state/interrupts.bpf.h"
#include "state/off_cpu.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
