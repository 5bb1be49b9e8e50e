/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Map declarations. ENTRIES is the default capacity, which the front end may change. */
#ifndef GPUSNOOP_MAPS_BPF_H
#define GPUSNOOP_MAPS_BPF_H

#include "shared/kernel.h"

#include <bpf/bpf_helpers.h>

#define MAP_OF_TYPE(NAME, TYPE, ENTRIES, KEY, VALUE, FLAGS)                                                            \
    struct {                                                                                                           \
        __uint(type, TYPE);                                                                                            \
        __uint(max_entries, ENTRIES);                                                                                  \
        __uint(map_flags, FLAGS);                                                                                      \
        __type(key, KEY);                                                                                              \
        __type(value, VALUE);                                                                                          \
    } NAME SEC(".maps")

/* Allocates memory for each entry when it is added. */
#define HASH_MAP(NAME, ENTRIES, KEY, VALUE) MAP_OF_TYPE(NAME, BPF_MAP_TYPE_HASH, ENTRIES, KEY, VALUE, BPF_F_NO_PREALLOC)
/* Allocates all memory when the map is created, for programs that cannot allocate memory, such as those attached to
 * wake-ups. */
#define PREALLOCATED_HASH_MAP(NAME, ENTRIES, KEY, VALUE) MAP_OF_TYPE(NAME, BPF_MAP_TYPE_HASH, ENTRIES, KEY, VALUE, 0)
#define LRU_HASH_MAP(NAME, ENTRIES, KEY, VALUE) MAP_OF_TYPE(NAME, BPF_MAP_TYPE_LRU_HASH, ENTRIES, KEY, VALUE, 0)
#define LPM_TRIE_MAP(NAME, ENTRIES, KEY, VALUE)                                                                        \
    MAP_OF_TYPE(NAME, BPF_MAP_TYPE_LPM_TRIE, ENTRIES, KEY, VALUE, BPF_F_NO_PREALLOC)
#define ARRAY_MAP(NAME, ENTRIES, VALUE) MAP_OF_TYPE(NAME, BPF_MAP_TYPE_ARRAY, ENTRIES, u32, VALUE, 0)
#define MMAPABLE_ARRAY_MAP(NAME, ENTRIES, VALUE)                                                                       \
    MAP_OF_TYPE(NAME, BPF_MAP_TYPE_ARRAY, ENTRIES, u32, VALUE, BPF_F_MMAPABLE)
#define PERCPU_ARRAY_MAP(NAME, ENTRIES, VALUE) MAP_OF_TYPE(NAME, BPF_MAP_TYPE_PERCPU_ARRAY, ENTRIES, u32, VALUE, 0)
/* One value per thread, created on demand and freed when the thread exits. */
#define TASK_STORAGE_MAP(NAME, VALUE) MAP_OF_TYPE(NAME, BPF_MAP_TYPE_TASK_STORAGE, 0, int, VALUE, BPF_F_NO_PREALLOC)

#define STACK_TRACE_MAP(NAME, ENTRIES, FRAMES)                                                                         \
    struct {                                                                                                           \
        __uint(type, BPF_MAP_TYPE_STACK_TRACE);                                                                        \
        __uint(max_entries, ENTRIES);                                                                                  \
        __uint(key_size, sizeof(u32));                                                                                 \
        __uint(value_size, (FRAMES) * sizeof(u64));                                                                    \
    } NAME SEC(".maps")

#endif
