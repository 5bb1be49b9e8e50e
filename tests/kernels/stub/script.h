/* SPDX-License-Identifier: GPL-2.0 */
/* What write(2) to a device of the stub takes: results of the next ioctls of the writing thread on this open file. */
#ifndef GPUSNOOP_STUB_SCRIPT_H
#define GPUSNOOP_STUB_SCRIPT_H

#include <linux/types.h>

struct stub_script {
    __u32 calls;     /* so many ioctls; 0: no ioctl, an Xid right now */
    __s32 result;    /* of the ioctl: 0 or -errno */
    __u32 delay_us;  /* in the driver; only a fatal signal ends it early */
    __u32 status;    /* NV_STATUS */
    __u64 status_at; /* address in the caller's memory; 0: none is stored */
    __u64 touch_at;  /* more of the caller's memory that the driver reads; a call that cannot fails with EFAULT */
    __u64 touch_size;
    __u32 xid;     /* reported after each call; 0: none */
    __u32 xid_pid; /* 0: the line in the log names no process */
    char xid_name[16];
    char xid_text[64];
};

#endif
