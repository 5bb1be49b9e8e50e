/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What a thread waits for that leaves its CPU: by what the kernel knows of it at that moment. No system call is hooked.
 */
#ifndef GPUSNOOP_BLOCK_REASON_BPF_H
#define GPUSNOOP_BLOCK_REASON_BPF_H

#include "base/descriptor.bpf.h"
#include "shared/thread_time.h"

const volatile __u64 driver_majors[CHARACTER_DEVICE_MAJORS / 64] = {}; /* of the GPU's driver, a bit each */

#define BY_DESCRIPTOR 0xfe /* its first argument is a descriptor, of which the kind tells */
#define BY_DEVICE 0xff

#ifndef __NR_futex_wait
#define __NR_futex_wait 455 /* 6.7 */
#endif

/* System calls that block, by what they wait for. */
const __u8 reasons[512] = {
    [__NR_futex] = TIME_LOCK,
    [__NR_futex_waitv] = TIME_LOCK,
    [__NR_futex_wait] = TIME_LOCK,
    [__NR_flock] = TIME_LOCK,
    [__NR_fcntl] = TIME_LOCK,
    [__NR_semop] = TIME_LOCK,
    [__NR_semtimedop] = TIME_LOCK,
    [__NR_ppoll] = TIME_POLL,
    [__NR_pselect6] = TIME_POLL,
    [__NR_epoll_pwait] = TIME_POLL,
    [__NR_epoll_pwait2] = TIME_POLL,
    [__NR_read] = BY_DESCRIPTOR,
    [__NR_write] = BY_DESCRIPTOR,
    [__NR_pread64] = BY_DESCRIPTOR,
    [__NR_pwrite64] = BY_DESCRIPTOR,
    [__NR_readv] = BY_DESCRIPTOR,
    [__NR_writev] = BY_DESCRIPTOR,
    [__NR_preadv] = BY_DESCRIPTOR,
    [__NR_pwritev] = BY_DESCRIPTOR,
    [__NR_preadv2] = BY_DESCRIPTOR,
    [__NR_pwritev2] = BY_DESCRIPTOR,
    [__NR_sendfile] = BY_DESCRIPTOR,
    [__NR_splice] = BY_DESCRIPTOR,
    [__NR_recvfrom] = TIME_SOCKET,
    [__NR_recvmsg] = TIME_SOCKET,
    [__NR_recvmmsg] = TIME_SOCKET,
    [__NR_sendto] = TIME_SOCKET,
    [__NR_sendmsg] = TIME_SOCKET,
    [__NR_sendmmsg] = TIME_SOCKET,
    [__NR_connect] = TIME_SOCKET,
    [__NR_accept] = TIME_SOCKET,
    [__NR_accept4] = TIME_SOCKET,
    [__NR_fsync] = TIME_DISK,
    [__NR_fdatasync] = TIME_DISK,
    [__NR_sync_file_range] = TIME_DISK,
    [__NR_syncfs] = TIME_DISK,
    [__NR_msync] = TIME_DISK,
    [__NR_fallocate] = TIME_DISK,
    [__NR_openat] = TIME_DISK,
    [__NR_openat2] = TIME_DISK,
    [__NR_newfstatat] = TIME_DISK,
    [__NR_statx] = TIME_DISK,
    [__NR_getdents64] = TIME_DISK,
    [__NR_unlinkat] = TIME_DISK,
    [__NR_renameat2] = TIME_DISK,
    [__NR_io_getevents] = TIME_DISK,
    [__NR_nanosleep] = TIME_SLEEP,
    [__NR_clock_nanosleep] = TIME_SLEEP,
    [__NR_ioctl] = BY_DEVICE,
    [__NR_wait4] = TIME_CHILD,
    [__NR_waitid] = TIME_CHILD,
    [__NR_clone] = TIME_CHILD,
    [__NR_clone3] = TIME_CHILD,
#ifdef __NR_open /* arm64 has only the newer forms of these */
    [__NR_poll] = TIME_POLL,
    [__NR_select] = TIME_POLL,
    [__NR_epoll_wait] = TIME_POLL,
    [__NR_open] = TIME_DISK,
    [__NR_stat] = TIME_DISK,
    [__NR_unlink] = TIME_DISK,
    [__NR_rename] = TIME_DISK,
    [__NR_vfork] = TIME_CHILD,
#endif
};

#define STOPPED 0x800c       /* __TASK_STOPPED, __TASK_TRACED, TASK_FROZEN */
#define ANONYMOUS 0x09041934 /* ANON_INODE_FS_MAGIC: an eventfd, a timerfd, ... */

INLINE bool is_of_driver(struct inode* inode)
{
    u32 major = READ(inode, i_rdev) >> 20;
    return major < CHARACTER_DEVICE_MAJORS && driver_majors[major / 64] >> (major & 63) & 1;
}

INLINE u32 reason_by_descriptor(struct task_struct* task, u64 descriptor, u32 reason)
{
    struct inode* inode = inode_of_descriptor(task, descriptor);
    if (!inode)
        return TIME_OTHER;
    u32 type = READ(inode, i_mode) & MODE_TYPE;
    if (type == MODE_CHARACTER_DEVICE)
        return is_of_driver(inode) ? TIME_DRIVER : TIME_OTHER;
    if (reason == BY_DEVICE)
        return TIME_OTHER;
    switch (type) {
    case MODE_PIPE:
        return TIME_PIPE;
    case MODE_SOCKET:
        return TIME_SOCKET;
    }
    return READ(inode, i_sb, s_magic) == ANONYMOUS ? TIME_OTHER : TIME_DISK;
}

/* System calls on a file, of which the first argument is the descriptor. */
INLINE bool has_descriptor(u64 number)
{
    switch (number) {
    case __NR_fsync:
    case __NR_fdatasync:
    case __NR_sync_file_range:
    case __NR_syncfs:
    case __NR_fallocate:
    case __NR_getdents64:
        return true;
    }
    return number < sizeof(reasons) && reasons[number] == BY_DESCRIPTOR;
}

/* By the debugger, by job control, or with its cgroup: whatever it was in then. */
INLINE bool is_stopped(struct task_struct* task)
{
    if (task->__state & STOPPED)
        return true;
    return bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen);
}

/* 5.15 (dd6e10fbd9fb) */
INLINE struct pt_regs* regs_of(struct task_struct* task)
{
    return (struct pt_regs*)bpf_task_pt_regs(task);
}

/* Of all exceptions, page faults block. */
INLINE bool is_in_page_fault(struct task_struct* task)
{
    return SYSTEM_CALL_NUMBER(regs_of(task)) == (u64)NO_SYSTEM_CALL;
}

INLINE u32 block_reason(struct task_struct* task, struct thread_time* time)
{
    struct pt_regs* regs = regs_of(task);
    u64 number = SYSTEM_CALL_NUMBER(regs);
    u32 reason = TIME_OTHER;
    if (number == (u64)NO_SYSTEM_CALL)
        return TIME_FAULT;
    if (BPF_CORE_READ_BITFIELD(task, in_iowait))
        return TIME_DISK;
    if (number < sizeof(reasons) && !IS_COMPATIBLE(task))
        reason = reasons[number] ?: TIME_OTHER;
    if (reason == BY_DESCRIPTOR || reason == BY_DEVICE)
        reason = reason_by_descriptor(task, SYSTEM_CALL_FIRST(regs), reason);
    if (reason == TIME_OTHER)
        time->other_syscall = number + 1;
    return reason;
}

#endif
