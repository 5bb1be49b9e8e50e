/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Kernel types that the programs use, maintained by hand. preserve_access_index makes every field access a CO-RE
 * relocation, so only names and types matter, not offsets; fields that no program reads are omitted. */
#ifndef GPUSNOOP_KERNEL_H
#define GPUSNOOP_KERNEL_H

#include <linux/bpf.h>

/* Makes bpf_tracing.h use the kernel's field names, which struct pt_regs below also uses. */
#define __VMLINUX_H__

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0

/* The verifier requires that a program reads its context at constant offsets, not through a pointer into it. Compilers
 * create such a pointer if a field is read twice, unless this attribute is set (from clang 18 on). */
#if __has_attribute(preserve_static_offset)
#define CONTEXT __attribute__((preserve_static_offset))
#else
#define CONTEXT
#endif

#if defined(__TARGET_ARCH_x86)
/* The context of a uprobe program. The architecture defines its layout, so it is not relocated. */
struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
} CONTEXT;
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
    u64 regs[31], sp, pc, pstate;
} CONTEXT;
struct user_pt_regs { /* bpf_tracing.h uses this name */
    u64 regs[31], sp, pc, pstate;
} CONTEXT;
#else
#error "neither x86-64 nor arm64: add the registers here and in base/machine.bpf.h"
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
    u32 s_dev;
    unsigned long s_magic;
};

struct inode {
    u16 i_mode;
    u32 i_rdev; /* device number of a device node: major << 20 | minor */
    unsigned long i_ino;
    struct super_block* i_sb;
};

struct qstr {
    const unsigned char* name;
};

struct dentry {
    struct dentry* d_parent;
    struct qstr d_name;
};

struct path {
    struct dentry* dentry;
};

struct file {
    struct inode* f_inode;
    struct path f_path;
};

struct fdtable {
    unsigned int max_fds;
    struct file** fd;
};

struct files_struct {
    struct fdtable* fdt;
};

struct kobject {
    const char* name;
};

struct device {
    struct kobject kobj;
};

struct pci_dev {
    struct device dev;
};

struct vm_area_struct {
    unsigned long vm_start;
    unsigned long vm_end;
    unsigned long vm_flags;
    unsigned long vm_pgoff;
    struct file* vm_file;
};

struct bvec_iter {
    unsigned int bi_size; /* bytes */
};

enum {
    REQ_OP_READ = 0,
    REQ_OP_WRITE = 1,
};

struct bio {
    unsigned int bi_opf;
    unsigned short bi_flags;
    struct bvec_iter bi_iter;
};

struct xol_area {
    unsigned long vaddr;
};

struct uprobes_state {
    struct xol_area* xol_area;
};

struct mm_struct {
    unsigned long start_stack; /* base of the first thread's stack, below its arguments and environment */
    struct uprobes_state uprobes_state;
};

typedef struct {
    u32 val;
} kuid_t;

struct kernfs_iattrs {
    kuid_t ia_uid;
};

struct kernfs_node {
    struct kernfs_node* parent;
    const char* name;
    u64 id; /* inode number of the directory; a union before 5.5 (67c0496e87d1) */
    unsigned short mode;
    struct kernfs_iattrs* iattr; /* NULL if root owns the directory */
};

struct kernfs_node___6_15 { /* the field's name from 6.15 on, when RCU began to protect it */
    struct kernfs_node* __parent;
};

struct cgroup {
    struct kernfs_node* kn;
};

struct cgroup_subsys_state {
    struct cgroup* cgroup;
};

struct css_set {
    struct cgroup_subsys_state* subsys[1];
    struct cgroup* dfl_cgrp;
};

struct upid {
    int nr;
};

struct pid {
    unsigned int level;
    struct upid numbers[1];
};

struct return_instance {
    unsigned long stack; /* address of the stack slot that held the return address */
    unsigned long orig_ret_vaddr;
    struct return_instance* next;
};

struct uprobe_task {
    struct return_instance* return_instances; /* innermost first */
};

struct thread_info {
#if defined(__TARGET_ARCH_arm64)
    unsigned long flags;
#else
    u32 status;
#endif
};

#if defined(__TARGET_ARCH_arm64)
struct pt_regs___system_call { /* fields that follow the registers */
    u64 orig_x0;
    s32 syscallno;
};
#endif

struct rq {
    u64 clock;
    unsigned int nr_running;
    int cpu;
    int online;
};

struct task_group {
    struct cfs_rq** cfs_rq; /* per CPU, with CONFIG_FAIR_GROUP_SCHED */
};

struct cpumask {
    unsigned long bits[1];
};

struct cfs_rq {
    struct rq* rq;
    struct task_group* tg;
    int throttle_count; /* with CONFIG_CFS_BANDWIDTH */
    u64 throttled_clock_self;
    u64 throttled_clock_self_time;
};

struct sched_entity {
    struct cfs_rq* cfs_rq; /* with CONFIG_FAIR_GROUP_SCHED */
    unsigned long long sum_exec_runtime;
};

struct sched_info {
    unsigned long pcount;            /* number of times that the task got a CPU */
    unsigned long long run_delay;    /* total time spent waiting for a CPU, in ns, without the current wait */
    unsigned long long last_arrival; /* last time that the task got a CPU, by the run queue's clock */
    unsigned long long last_queued;  /* start of the current wait for a CPU, by the run queue's clock; 0: not waiting */
};

struct thread_struct {
#if defined(__TARGET_ARCH_arm64)
    struct {
        unsigned long tp_value;
    } uw;
#else
    unsigned long fsbase;
#endif
};

struct task_struct {
    struct thread_info thread_info;
    unsigned int __state;
    unsigned int flags;
    struct sched_entity se;
    struct cpumask cpus_mask;
    unsigned in_iowait : 1;
    unsigned frozen : 1;          /* with CONFIG_CGROUPS */
    struct sched_info sched_info; /* with CONFIG_SCHED_INFO */
    unsigned long maj_flt;
    struct mm_struct* mm;
    int pid;
    int tgid;
    u64 start_boottime; /* "real_start_time" before 5.5 (cf25e24db61c); our floor is 5.15 */
    u64 self_exec_id;
    struct task_struct* group_leader;
    struct pid* thread_pid;
    char comm[16];
    struct files_struct* files;
    struct css_set* cgroups;
    struct uprobe_task* utask;
    struct thread_struct thread;
};

struct file___socket {
    void* private_data; /* for a socket's file: the struct socket */
};

struct net_device {
    unsigned int flags;
};

struct dst_entry {
    struct net_device* dev;
};

struct dst_entry___6_18 { /* from 6.18 on, the field `dev` is named `dev_rcu` */
    struct net_device* dev_rcu;
};

struct sock {
    struct dst_entry* sk_dst_cache;
};

struct socket {
    struct sock* sk;
};

typedef struct {
    unsigned long sig[1];
} sigset_t;

struct sigpending {
    sigset_t signal;
};

struct signal_struct {
    struct sigpending shared_pending;
};

struct task_struct___woken { /* fields used only to find the cause of a wake-up */
    void* stack;
    struct signal_struct* signal;
    sigset_t blocked;
    struct sigpending pending;
};

struct task_struct___6_18 { /* from 6.18 on, CPU quotas (cpu.max) throttle each task when it returns to user mode */
    bool throttled;
};

struct trace_entry {
    int pid; /* in the kernel, this struct has eight bytes, with fields that are omitted here */
};

struct trace_event_raw_sys_enter {
    struct trace_entry ent;
    long id;
    unsigned long args[6];
};

struct trace_event_raw_sys_exit {
    struct trace_entry ent;
    long id;
    long ret;
};

struct seq_file;

struct bpf_iter_meta {
    struct seq_file* seq;
};

struct bpf_iter__task {
    struct bpf_iter_meta* meta;
    struct task_struct* task;
};

struct bpf_iter__task_vma {
    struct bpf_iter_meta* meta;
    struct task_struct* task;
    struct vm_area_struct* vma;
};

#pragma clang attribute pop

/* The kernel's configuration determines which of these values exist, and which numbers they have. */
enum cgroup_subsys_id {
    cpuset_cgrp_id,
    cpu_cgrp_id,
    cpuacct_cgrp_id,
    io_cgrp_id,
    memory_cgrp_id,
    devices_cgrp_id,
    freezer_cgrp_id,
    pids_cgrp_id,
};

#endif
