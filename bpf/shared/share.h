/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Each process's share of the tables that all processes fill: see base/share.bpf.h. */
#ifndef GPUSNOOP_SHARE_H
#define GPUSNOOP_SHARE_H

#include <linux/types.h>

enum shared_table {
    SHARED_COMMS,
    SHARED_CAPTURES,
    SHARED_CAPTURING_STREAMS,
    SHARED_CAPTURED_EVENTS,
    SHARED_CONTEXTS,
    SHARED_LEGACY_SHAPES,
    SHARED_GRAPHS,
    SHARED_EXECS,
    SHARED_PHYSICAL_MEMORY,
    SHARED_HELD,
    SHARED_PHYSICALS,
    SHARED_MAPPINGS,
    SHARED_TABLES,
};

/* Number of entries that one process uses, for each table. */
struct share {
    __u64 entries[SHARED_TABLES];
    __u64 rows; /* number of rows in the table `calls` that the process has added in the generation `rows_since` */
    __u64 rows_since;
};

/* Number of entries that all processes use, for each table. The front end subtracts the entries that it deletes. */
struct shared_taken {
    __u64 entries[SHARED_TABLES];
    __u64 rows; /* number of rows in the table `calls`; BPF programs increment it, and the front end corrects it each
                   time that it has read the table */
    __u64 rows_since; /* sequence number of the current generation of rows (base/call.bpf.h) */
};

#endif
