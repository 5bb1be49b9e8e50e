/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Calls into GPU drivers: ioctl, open, close, mmap. */
#include "kinds/driver.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
