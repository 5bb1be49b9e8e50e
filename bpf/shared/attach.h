/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_ATTACH_H
#define GPUSNOOP_ATTACH_H

#define COOKIE_SECOND 0x80000000u /* in a probe's cookie: it belongs to the second attachment (common.bpf.h) */

#endif
