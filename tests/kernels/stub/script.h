/* SPDX-License-Identifier: GPL-2.0 */
/* Data of write(2) to a stub device: results of the writing thread's next ioctls on this open file. */
#ifndef GPUSNOOP_STUB_SCRIPT_H
#define GPUSNOOP_STUB_SCRIPT_H

#include <linux/types.h>

struct stub_script {
    __u32 calls;     /* number of ioctls; 0: report an Xid immediately */
    __s32 result;    /* result of the ioctl: 0 or -errno */
    __u32 delay_us;  /* time spent in the driver; only a fatal signal ends it early */
    __u32 status;    /* NV_STATUS */
    __u64 status_at; /* address in the caller's memory at which to store the status; 0: do not store it */
    __u64 touch_at;  /* address of memory that the driver also reads; unreadable: the ioctl fails with EFAULT */
    __u64 touch_size;
    __u32 xid;     /* number of the Xid reported after each call; 0: none */
    __u32 xid_pid; /* 0: the line in the kernel log names no process */
    char xid_name[16];
    char xid_text[64];
};

#endif
