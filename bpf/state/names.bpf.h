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

/* Sends one record with a name of at most `capacity` bytes. True where it was too long for that. A name that is not in
 * memory is read by the front end, which must be quick about it: the process may end. The same goes for the symbol of a
 * host stub. */
#define SEND_NAME(from, bytes)                                                                                         \
    ({                                                                                                                 \
        struct {                                                                                                       \
            struct name_record record;                                                                                 \
            char name[bytes];                                                                                          \
        }* sent = bpf_ringbuf_reserve(&ring, sizeof(*sent), 0);                                                        \
        bool cut = false;                                                                                              \
        if (!sent) {                                                                                                   \
            lose(LOSS_NAME, 1);                                                                                        \
        } else {                                                                                                       \
            s32 length = bpf_probe_read_user_str(sent->name, bytes, (void*)(from)->name_address);                      \
            cut = length == (bytes);                                                                                   \
            fill_name(&sent->record, from, length, bytes);                                                             \
            if (cut && (bytes) < 4096)                                                                                 \
                bpf_ringbuf_discard(sent, BPF_RB_NO_WAKEUP);                                                           \
            else                                                                                                       \
                bpf_ringbuf_submit(sent, length > 0 ? ring_flags(sizeof(*sent)) : BPF_RB_FORCE_WAKEUP);                \
        }                                                                                                              \
        cut;                                                                                                           \
    })

/* Names of template kernels run to kilobytes, most are short, and a burst of thousands of them must fit the ring. */
INLINE void send_name(const struct name_record* from)
{
    if (SEND_NAME(from, 128) && SEND_NAME(from, 1024))
        SEND_NAME(from, 4096);
}

INLINE void send_alias(const struct name_record* from)
{
    struct name_record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        lose(LOSS_NAME, 1);
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
