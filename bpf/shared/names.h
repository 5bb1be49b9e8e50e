/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What the kernel side learns about kernel names, sent once per handle. The name follows the record. What does
 * not fit in the ring is in a map, without a name (bpf/kinds/state.bpf.h). */
#ifndef GPUSNOOP_NAMES_H
#define GPUSNOOP_NAMES_H

#include <linux/types.h>

#include "process.h"

enum name_source {
    NAME_LOOKUP,     /* cuModuleGetFunction, cuLibraryGetKernel: the driver was asked for this name */
    NAME_REGISTERED, /* __cudaRegisterFunction: handle is a host stub */
    NAME_ALIAS,      /* cuKernelGetFunction, __cudaGetKernel: alias is another handle of the same kernel */
    NAME_CORRELATED, /* seen inside a runtime launch of alias (a host stub or a runtime handle) */
};

struct name_record {
    __u32 type; /* RECORD_NAME */
    __u32 source;
    struct image image;
    __u64 handle;
    __u64 alias;        /* 0 where name counts */
    __u64 name_address; /* where the name lies in the process; read there when length is not positive */
    __s32 length;       /* of name with its zero, or a negative error: the page was not in memory */
    __u32 capacity;     /* of the bytes that follow; a name of this length may have been cut */
};

#endif
