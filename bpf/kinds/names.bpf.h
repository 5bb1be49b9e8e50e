/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Kernel names as they pass by. All of this is rare: once per kernel, not per launch. */
#ifndef GPUSNOOP_NAMES_BPF_H
#define GPUSNOOP_NAMES_BPF_H

#include "base/common.bpf.h"
#include "base/thread.bpf.h"
#include "shared/names.h"

INLINE void fill_name(struct name_record* record, const struct name_record* from, s32 length, u32 capacity)
{
    *record = *from;
    record->type = RECORD_NAME;
    record->length = length;
    record->capacity = capacity;
}

/* Records that are not in the ring: those for which it had no room, and registrations while it is half full. The front
 * end takes a record from here when it needs the name. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1); /* set by the front end where names are shown */
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct handle_number);
    __type(value, struct name_record);
} unsent_names SEC(".maps");

INLINE void keep_unsent(const struct name_record* from)
{
    struct handle_number key = {.image = from->image, .number = from->handle};
    struct name_record record;
    fill_name(&record, from, 0, 0);
    /* The text of a lookup is the caller's own, and may be gone by then. */
    if (record.source == NAME_LOOKUP)
        record.name_address = 0;
    if (bpf_map_update_elem(&unsent_names, &key, &record, BPF_ANY))
        lose(LOSS_NAME, 1);
}

enum sending { NAME_SENT, NAME_TOO_LONG, RING_FULL };

/* Sends one record with a name of at most `bytes`. A name that is not in memory is read by the front end, which must be
 * quick about it: the process may end. The same goes for the symbol of a host stub. */
#define SEND_NAME(from, bytes)                                                                                         \
    ({                                                                                                                 \
        struct {                                                                                                       \
            struct name_record record;                                                                                 \
            char name[bytes];                                                                                          \
        }* sent = bpf_ringbuf_reserve(&ring, sizeof(*sent), 0);                                                        \
        enum sending outcome = RING_FULL;                                                                              \
        if (sent) {                                                                                                    \
            s32 length = bpf_probe_read_user_str(sent->name, bytes, (void*)(from)->name_address);                      \
            outcome = length == (bytes) && (bytes) < 4096 ? NAME_TOO_LONG : NAME_SENT;                                 \
            fill_name(&sent->record, from, length, bytes);                                                             \
            if (outcome == NAME_TOO_LONG)                                                                              \
                bpf_ringbuf_discard(sent, BPF_RB_NO_WAKEUP);                                                           \
            else                                                                                                       \
                bpf_ringbuf_submit(sent, length > 0 ? ring_flags(sizeof(*sent)) : BPF_RB_FORCE_WAKEUP);                \
        }                                                                                                              \
        outcome;                                                                                                       \
    })

/* Names of template kernels run to kilobytes, most are short, and a burst of thousands of them must fit the ring. */
INLINE void send_name(const struct name_record* from)
{
    enum sending outcome = SEND_NAME(from, 128);
    if (outcome == NAME_TOO_LONG)
        outcome = SEND_NAME(from, 1024);
    if (outcome == NAME_TOO_LONG)
        outcome = SEND_NAME(from, 4096);
    if (outcome == RING_FULL)
        keep_unsent(from);
}

/* PyTorch 2.6 registers 19,425 kernels in 0.4 s and launches a few hundred of them. A name stays where it is as long as
 * the kernel is registered, so what comes in such a burst is read later, if at all. */
INLINE void send_registration(const struct name_record* from)
{
    if (ring_is_half_full())
        keep_unsent(from);
    else
        send_name(from);
}

INLINE void send_alias(const struct name_record* from)
{
    struct name_record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        keep_unsent(from);
        return;
    }
    fill_name(record, from, 0, 0);
    bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

/* Handles whose runtime side has been sent. Losing one only means sending it again. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, struct handle_number);
    __type(value, u64);
} correlated SEC(".maps");

/* The driver handle was launched inside a runtime launch of `runtime_func`: both are the same kernel. */
INLINE void correlate(const struct image* image, u64 handle, u64 runtime_func)
{
    struct handle_number key = {.image = *image, .number = handle};
    u64* known = bpf_map_lookup_elem(&correlated, &key);
    if (known && *known == runtime_func)
        return;
    bpf_map_update_elem(&correlated, &key, &runtime_func, BPF_ANY);
    struct name_record record = {.source = NAME_CORRELATED, .image = *image, .handle = handle, .alias = runtime_func};
    send_alias(&record);
}

#endif
