/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Calls that wait for the device. */
#define SHOWS_WAITING

#include "kinds/wait.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
