/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Calls into GPU drivers: device nodes, ioctl commands, and the layout of the commands' structs. */
#ifndef GPUSNOOP_IOCTL_H
#define GPUSNOOP_IOCTL_H

#include <linux/types.h>

#include "call.h"
#include "record.h"

/* A kind of device node. */
enum driver_node {
    NODE_NONE,
    NODE_NVIDIA_CTL, /* /dev/nvidiactl, which gets nearly all calls to the resource manager */
    NODE_NVIDIA_GPU, /* /dev/nvidia0, ... */
    NODE_NVIDIA_MODESET,
    NODE_NVIDIA_UVM,
    NODE_NVIDIA_UVM_TOOLS,
    NODE_NVIDIA_CAPS,
    NODE_KFD,    /* AMD compute */
    NODE_AMDGPU, /* card or render node of amdgpu */
    NODES,
};

#define MINOR_ANY 0xfffff /* in a key, matches all minors of the major that have no entry of their own */

/* Flag of an enum driver_node: the driver's functions are hooked, so system calls on the node are not counted again. */
#define NODE_BY_FUNCTION 0x80

/* Set of ioctl commands to which a command number belongs. Each driver numbers its own commands. */
enum command_space {
    SPACE_NONE,
    SPACE_NVIDIA, /* nvidiactl and nvidiaN: _IOWR('F', number, struct) */
    SPACE_UVM,    /* nvidia-uvm and nvidia-uvm-tools: plain numbers, each with its own struct */
    SPACE_MODESET,
    SPACE_KFD,
    SPACE_AMDGPU,
    SPACES,
};

/* Entry points of a driver. They are values of call_key.kind, and are higher than all values of enum probe_kind. */
enum driver_entry {
    ENTRY_IOCTL = 128,
    ENTRY_OPEN,
    ENTRY_CLOSE,
    ENTRY_MMAP,
};

/* Meaning of call_key.result. Most failing calls return 0, and the driver stores an NV_STATUS in their struct. */
enum driver_outcome {
    OUTCOME_UNKNOWN, /* the call returned 0, but its status is unreadable or at an unknown offset */
    OUTCOME_OK,
    OUTCOME_STATUS, /* the result is an NV_STATUS */
    OUTCOME_ERRNO,  /* the result is a negative errno */
};

#define NV_WARNINGS 0x10000 /* this and higher values of an NV_STATUS mean success with a warning */

/* Key of a command. In SPACE_UVM, `request` is the command's number. In the other spaces, it is the ioctl code with
 * direction and size. SPACE_NVIDIA also has entries whose `request` is only the command's number. They are used for
 * sizes without an entry, and only for fields whose offset does not depend on the size. */
struct command_key {
    __u32 space;
    __u32 request;
};

#define OFFSET_NONE 0xffff

/* Offsets in a command's struct. */
struct command_layout {
    __u16 size;       /* size of the struct; minimum size if command_key.request is only the command's number */
    __u16 status;     /* offset of a __u32: NV_STATUS */
    __u16 subject;    /* offset of a __u32: the control command, allocation class, or heap function */
    __u16 parameters; /* offset of a __u64: pointer to a struct that depends on the subject */
};

/* Key of a command whose struct holds a size in bytes. */
struct size_key {
    struct command_key command;
    __u32 subject; /* value of the field at command_layout.subject; 0 for commands without such a field */
    __u32 zero;
};

struct size_layout {
    __u16 offset;       /* offset of the size, a __u64 */
    __u8 in_parameters; /* nonzero if `offset` is in the struct to which command_layout.parameters points */
    __u8 is_limit;      /* nonzero if the value is one less than the size */
    __u8 is_virtual;    /* nonzero if the size is that of address space, not of memory */
    __u8 zero[3];
};

/* A call in flight. */
struct driver_call {
    struct call_key key;
    __u64 since_ns;        /* start of the call, CLOCK_MONOTONIC */
    __u64 argument;        /* address of the command's struct */
    __u64 thread_start_ns; /* start of the thread, CLOCK_BOOTTIME; needed because thread ids are reused */
};

#define RECENT_CALLS 8

struct recent_call {
    __u64 time_ns; /* time at which the call returned */
    __u64 duration_ns;
    __u64 subject;
    __s32 result;
    struct driver_form driver;
    __u8 kind;
    __u8 flags;
    __u8 zero[6];
};

/* The last calls of a process. */
struct recent_calls {
    struct image image;
    __u64 count; /* number of calls so far; the last one is at (count - 1) % RECENT_CALLS */
    struct recent_call calls[RECENT_CALLS];
};

struct xid_record {
    __u32 type; /* RECORD_XID */
    __u32 xid;
    __u64 time_ns;   /* time of the error, CLOCK_MONOTONIC */
    char device[32]; /* PCI address */
    char text[256];  /* the driver's message; empty if the probed function does not provide it */
};

static inline __attribute__((always_inline)) enum command_space space_of_node(__u8 node)
{
    switch (node) {
    case NODE_NVIDIA_CTL:
    case NODE_NVIDIA_GPU:
        return SPACE_NVIDIA;
    case NODE_NVIDIA_UVM:
    case NODE_NVIDIA_UVM_TOOLS:
        return SPACE_UVM;
    case NODE_NVIDIA_MODESET:
        return SPACE_MODESET;
    case NODE_KFD:
        return SPACE_KFD;
    case NODE_AMDGPU:
        return SPACE_AMDGPU;
    default:
        return SPACE_NONE;
    }
}

/* True if the call failed. A success with a warning is not a failure. */
static inline __attribute__((always_inline)) int is_failure(__u8 outcome, __s32 result)
{
    return outcome == OUTCOME_ERRNO || (outcome == OUTCOME_STATUS && result && (__u32)result < NV_WARNINGS);
}

#endif
