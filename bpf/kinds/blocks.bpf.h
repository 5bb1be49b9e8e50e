/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Blocked threads: why they block, the files for which they wait, and their stacks. */
#ifndef GPUSNOOP_BLOCKS_BPF_H
#define GPUSNOOP_BLOCKS_BPF_H

#include "base/process.bpf.h"
#include "base/python.bpf.h"
#include "base/window.bpf.h"
#include "kinds/thread_time.bpf.h"
#include "shared/gap.h"
#include "shared/histogram.h"
#include "shared/thread_time.h"

/* Reasons why threads block. They are read from the kernel's data when a thread leaves its CPU, so no system call is
 * hooked. */

const volatile __u64 driver_majors[CHARACTER_DEVICE_MAJORS / 64] = {}; /* bit set of the major numbers of GPU drivers */

/* Values in the table `reasons`, for system calls whose first argument is a file descriptor. */
#define BY_DESCRIPTOR 0xfe /* the type of the file determines the reason (reason_by_descriptor()) */
#define BY_DEVICE 0xff     /* TIME_DRIVER if the file is a device of a GPU driver, else TIME_OTHER */

#ifndef __NR_futex_wait
#define __NR_futex_wait 455 /* since Linux 6.7 */
#endif

/* Why a thread is blocked (enum time_part, BY_DESCRIPTOR or BY_DEVICE), by the number of its system call. */
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
#ifdef __NR_open /* arm64 lacks these older system calls */
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
#define ANONYMOUS 0x09041934 /* ANON_INODE_FS_MAGIC: eventfd, timerfd, ... */

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

/* True for system calls on a file whose first argument is the file's descriptor. */
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

/* True if a debugger or job control has stopped the thread, or its cgroup is frozen. */
INLINE bool is_stopped(struct task_struct* task)
{
    if (task->__state & STOPPED)
        return true;
    return bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen);
}

/* bpf_task_pt_regs() exists since 5.15 (dd6e10fbd9fb). */
INLINE struct pt_regs* regs_of(struct task_struct* task)
{
    return (struct pt_regs*)bpf_task_pt_regs(task);
}

/* True if a thread that blocks or does disk I/O is in a page fault. NO_SYSTEM_CALL shows only that the thread is in an
 * exception. Page faults are the only exceptions that block or do disk I/O. */
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

/* The file that a blocked thread waits for. Its name is read when the thread is woken, because the thread is then still
 * in the system call. */

/* Returns NULL if the thread is not in a system call, or if the system call has no descriptor. */
INLINE struct file* file_of_call(struct task_struct* task)
{
    struct pt_regs* regs = regs_of(task);
    if (!has_descriptor(SYSTEM_CALL_NUMBER(regs)) || IS_COMPATIBLE(task))
        return 0;
    return file_of_descriptor(task, SYSTEM_CALL_FIRST(regs));
}

/* Reads only the names of a file and of its folder, because building the whole path takes locks and may be slow. */
INLINE void read_names(struct file* from, char* file, char* folder)
{
    struct dentry* entry = from ? READ(from, f_path.dentry) : 0;
    if (!entry)
        return;
    kernel_text(file, FILE_NAME, READ(entry, d_name.name));
    kernel_text(folder, FOLDER_NAME, READ(entry, d_parent, d_name.name));
}

OWN_FRAME int read_file(struct task_struct* task, struct waker* waker)
{
    read_names(file_of_call(task), waker->file, waker->folder);
    return 0;
}

/* Records why the thread that is being woken was blocked. */
INLINE void describe_block(struct task_struct* task, const struct thread_time* time, struct waker* waker)
{
    waker->user_stack = time->user_stack;
    waker->kernel_stack = time->kernel_stack;
    waker->fault = waker->part == TIME_FAULT ? time->fault : 0;
    waker->file[0] = waker->folder[0] = 0;
    if (waker->part == TIME_DISK)
        read_file(task, waker);
}

/* Stacks of blocked threads. They are read when a thread leaves its CPU, and counted when it gets a CPU again. */

const volatile bool stacks_of_blocks = false;
const volatile bool count_blocks = false; /* in addition to reading stacks, count blocked time by stack */

/* If stacks are not requested, the front end reduces this map to 1 entry. */
STACK_TRACE_MAP(block_stacks, 16384, BLOCK_FRAMES);

PREALLOCATED_HASH_MAP(block_counts, 16384, struct block_key, struct block_count);

/* Reads the stacks of the current thread, which is leaving its CPU. */
INLINE void take_stacks(void* ctx, struct thread_time* time)
{
    struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(bpf_get_current_task_btf());
    time->user_stack = -1;
    if (follow_python)
        time->user_stack = read_python_stack(PT_REGS_SP(regs), PT_REGS_IP(regs), STACK_NOT_READ, COPIED_ANYWHERE);
    if (time->user_stack < 0)
        time->user_stack = window_stack_of(regs, COPIED_ANYWHERE);
    if (time->user_stack < 0)
        time->user_stack = bpf_get_stackid(ctx, &block_stacks, BPF_F_USER_STACK);
    time->kernel_stack = bpf_get_stackid(ctx, &block_stacks, 0);
    if (time->user_stack < 0 || time->kernel_stack < 0)
        lose(LOSS_STACK, 1);
}

INLINE void count_block(const struct thread_state* thread, const struct thread_time* time, u32 part, u64 ns)
{
    static const struct block_count none = {};
    struct block_key key = {
        .place = thread->place - 1, .part = part, .user = time->user_stack, .kernel = time->kernel_stack};
    struct block_count* count = bpf_map_lookup_elem(&block_counts, &key);
    if (!count) {
        bpf_map_update_elem(&block_counts, &key, &none, BPF_NOEXIST);
        count = bpf_map_lookup_elem(&block_counts, &key);
    }
    if (!count) {
        lose(LOSS_BLOCK, 1);
        return;
    }
    count->sum += ns; /* not atomic, because only the CPU on which the thread runs writes to the thread's entries */
    count->times++;
}

/* Time that threads wait for each file, and the bytes that they read from and write to disks. A wait is counted when
 * the thread gets a CPU again. The thread is then still in the system call or page fault, which identifies the file. */

const volatile bool count_files = false;

/* If files are not requested, the front end reduces this map to 1 entry. */
PREALLOCATED_HASH_MAP(file_counts, 16384, struct file_key, struct file_count);

INLINE struct file_count* new_file_count(const struct file_key* key, struct file* file)
{
    static const struct file_count none = {};
    bpf_map_update_elem(&file_counts, key, &none, BPF_NOEXIST);
    struct file_count* count = bpf_map_lookup_elem(&file_counts, key);
    if (count)
        read_names(file, count->file, count->folder);
    return count;
}

/* The additions need not be atomic, because only the CPU on which the thread runs writes to the thread's entries. */
OWN_FRAME int count_of_file(struct file* file, u32 place, u64 bucket, u64 sum)
{
    struct file_key key = {.place = place, .bucket = bucket};
    if (file) {
        key.inode = READ(file, f_inode, i_ino);
        key.device = READ(file, f_inode, i_sb, s_dev);
    }
    struct file_count* count = bpf_map_lookup_elem(&file_counts, &key) ?: new_file_count(&key, file);
    if (!count) {
        lose(LOSS_BLOCK, 1);
        return 0;
    }
    count->sum += sum;
    count->times++;
    return 0;
}

struct mapping {
    struct file* file;
    bool anonymous;
};

static long note_mapping(struct task_struct* task, struct vm_area_struct* vma, struct mapping* mapping)
{
    mapping->file = vma->vm_file;
    mapping->anonymous = !mapping->file;
    return 0;
}

/* Returns the mapping at the address of a page fault in progress. The mapping cannot disappear during the fault. If the
 * result has no file and is not anonymous, the mapping is unknown: another thread is changing the mappings, or an
 * earlier lookup on this CPU has not released the lock yet. */
INLINE struct mapping mapping_at(struct task_struct* task, u64 address)
{
    struct mapping mapping = {};
    if (address && bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_find_vma))
        bpf_find_vma(task, address, note_mapping, &mapping, 0);
    return mapping;
}

OWN_FRAME int count_file_wait(struct task_struct* task, struct thread_time* time, u32 place, u64 ns)
{
    if (!is_in_page_fault(task))
        return count_of_file(file_of_call(task), place, histogram_bucket(ns), ns);
    const struct mapping mapping = mapping_at(task, time->fault);
    return mapping.anonymous ? 0 : count_of_file(mapping.file, place, histogram_bucket(ns), ns);
}

#define CLONED 2      /* 1 << BIO_CLONED (5.15 to 7.3): this bio is part of a request that was counted before */
#define OPERATION 255 /* REQ_OP_MASK */

/* Attached only if files are requested, because this program runs for every disk I/O on the machine. Writeback is not
 * counted, because it is not done by the threads that wrote the data. */
SEC("tp_btf/block_bio_queue")
int BPF_PROG(disk_asked, struct bio* bio)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (!may_have_time(task))
        return 0;
    struct thread_state* thread = thread_state(task);
    struct thread_time* time = time_of(thread);
    u32 operation = bio->bi_opf & OPERATION;
    if (!time || bio->bi_flags & CLONED || operation > REQ_OP_WRITE)
        return 0;
    struct file* file = is_in_page_fault(task) ? mapping_at(task, time->fault).file : file_of_call(task);
    return count_of_file(file, thread->place - 1, operation == REQ_OP_READ ? FILE_READ : FILE_WRITTEN,
                         bio->bi_iter.bi_size);
}

#endif
