/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef GPUSNOOP_PATHS_H
#define GPUSNOOP_PATHS_H

/* Kinds of BPF programs that see a driver's calls and errors. */
enum hook { PATH_KPROBE, PATH_KRETPROBE, PATH_FENTRY, PATH_FEXIT, PATH_XID_KPROBE, PATH_XID_TRACEPOINT, PATHS };

struct path_count {
    unsigned long long count;
    unsigned long long sum;    /* sum of the request codes or Xid numbers */
    unsigned long long failed; /* number of results below zero */
};

#endif
