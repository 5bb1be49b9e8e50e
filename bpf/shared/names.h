/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Names of GPU kernels, sent once per handle. The name follows the record. If a record does not fit in the ring buffer,
 * it is stored in a map, without the name (bpf/kinds/state.bpf.h). */
#ifndef GPUSNOOP_NAMES_H
#define GPUSNOOP_NAMES_H

#include <linux/types.h>

#include "process.h"

enum name_source {
    NAME_LOOKUP,     /* cuModuleGetFunction, cuLibraryGetKernel: lookup by name in the driver */
    NAME_REGISTERED, /* __cudaRegisterFunction: `handle` is a host stub */
    NAME_ALIAS,      /* cuKernelGetFunction, __cudaGetKernel: `alias` is another handle of the same kernel */
    NAME_CORRELATED, /* `handle` was launched inside a runtime launch of `alias` (a host stub or a runtime handle) */
};

struct name_record {
    __u32 type; /* RECORD_NAME */
    __u32 source;
    struct image image;
    __u64 handle;
    __u64 alias;        /* NAME_ALIAS, NAME_CORRELATED: another handle of the same kernel; else 0 */
    __u64 name_address; /* address of the name in the process; if `length` is not positive, the front end reads the name
                           there */
    __s32 length;   /* length of the name with its terminating zero; negative if the name's page was not in memory */
    __u32 capacity; /* bytes reserved after the record; a name with this length may have been truncated */
};

#endif
