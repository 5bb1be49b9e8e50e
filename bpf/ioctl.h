/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Calls that enter a GPU's driver: what was opened, which call it is, and where its struct keeps what is told of it. */
#ifndef GPUSNOOP_IOCTL_H
#define GPUSNOOP_IOCTL_H

#include <linux/types.h>

/* A kind of device node. */
enum driver_node {
    NODE_NONE,
    NODE_NVIDIA_CTL, /* /dev/nvidiactl: nearly all calls of the resource manager */
    NODE_NVIDIA_GPU, /* /dev/nvidia0, ... */
    NODE_NVIDIA_MODESET,
    NODE_NVIDIA_UVM,
    NODE_NVIDIA_UVM_TOOLS,
    NODE_NVIDIA_CAPS,
    NODE_KFD,    /* AMD compute */
    NODE_AMDGPU, /* card or render node of amdgpu */
    NODES,
};

/* What numbers of commands mean depends on who takes them. */
enum command_space {
    SPACE_NONE,
    SPACE_NVIDIA, /* nvidiactl and nvidiaN: _IOWR('F', number, struct) */
    SPACE_UVM,    /* nvidia-uvm and nvidia-uvm-tools: plain numbers, the struct goes by the number */
    SPACE_MODESET,
    SPACE_KFD,
    SPACE_AMDGPU,
    SPACES,
};

/* By the request as the driver takes it: in SPACE_UVM the number, elsewhere the code with direction and size. */
struct command_key {
    __u32 space;
    __u32 request;
};

#define OFFSET_NONE 0xffff

/* Offsets in a command's struct. */
struct command_layout {
    __u16 size;       /* of the struct */
    __u16 status;     /* __u32: NV_STATUS */
    __u16 subject;    /* __u32: command of a control, class of an allocation, function of a heap call */
    __u16 parameters; /* __u64: pointer to a struct that goes by the subject */
};

/* Where a command says how many bytes it is about. */
struct size_key {
    struct command_key command;
    __u32 subject; /* 0 for commands that have none */
    __u32 zero;
};

struct size_layout {
    __u16 offset;       /* __u64 */
    __u8 in_parameters; /* not in the command's own struct, but behind its pointer */
    __u8 is_limit;      /* one less than the size */
    __u8 is_virtual;    /* address space, not memory */
    __u8 zero[3];
};

#endif
