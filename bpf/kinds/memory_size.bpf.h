/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* How much an allocation asks for: bytes, rows, or elements of an array. */
#ifndef GPUSNOOP_MEMORY_SIZE_BPF_H
#define GPUSNOOP_MEMORY_SIZE_BPF_H

#include "base/api_call.bpf.h"

/* enum CUarray_format: bytes of one channel. 0: a format of blocks or planes, whose size is not simply told. */
static const volatile u8 bytes_of_format[64] = {
    [0x01] = 1, [0x02] = 2, [0x03] = 4, [0x08] = 1, [0x09] = 2, [0x0a] = 4, [0x10] = 2, [0x20] = 4,
};

INLINE u64 bytes_of_element(struct arguments* arguments, const volatile struct probe_row* row)
{
    if (has_argument(row, ARG_FORMAT)) {
        u64 format = read_argument_alike(arguments, row, ARG_FORMAT);
        u64 bytes = bytes_of_format[format & 63];
        return format < 64 ? bytes * read_argument_alike(arguments, row, ARG_CHANNELS) : 0;
    }
    s32 bits[4] = {};
    arguments->error |=
        bpf_probe_read_user(bits, sizeof(bits), (void*)read_argument_alike(arguments, row, ARG_CHANNEL_BITS));
    return (u32)(bits[0] + bits[1] + bits[2] + bits[3]) / 8;
}

#define LEVELS_MAX 32

/* As the descriptor has it; the driver rounds up. */
INLINE bool array_bytes(struct arguments* arguments, const volatile struct probe_row* row, u64* bytes)
{
    u64 element = bytes_of_element(arguments, row);
    u64 width = read_argument_alike(arguments, row, ARG_BYTES);
    u64 height = read_argument_alike(arguments, row, ARG_HEIGHT) ?: 1;
    u64 depth = read_argument_alike(arguments, row, ARG_DEPTH) ?: 1;
    u64 levels = has_argument(row, ARG_LEVELS) ? read_argument_alike(arguments, row, ARG_LEVELS) : 1;
    u64 elements = width;
    if (!element || !times(&elements, height) || !times(&elements, depth) || !times(&elements, element))
        return false;
    *bytes = 0;
    for (u32 i = 0; i < LEVELS_MAX && i < levels; i++) {
        *bytes += width * height * depth * element;
        width = opaque(width > 1 ? width / 2 : 1);
        height = opaque(height > 1 ? height / 2 : 1);
        depth = opaque(depth > 1 ? depth / 2 : 1);
    }
    return true;
}

/* Bytes that are asked for. Rows of what has a pitch are rounded up when they are made: how many they are. */
INLINE u32 read_bytes(struct arguments* arguments, const volatile struct probe_row* row, struct memory_call* memory)
{
    u64 bytes = 0, rows = 0;
    bool sized = true;
    if (has_argument(row, ARG_FORMAT) || has_argument(row, ARG_CHANNEL_BITS)) {
        sized = array_bytes(arguments, row, &bytes);
    } else if (has_argument(row, ARG_PITCH)) {
        bytes = read_argument_alike(arguments, row, ARG_BYTES);
        rows = read_argument_alike(arguments, row, ARG_HEIGHT);
        sized =
            times(&rows, read_argument_alike(arguments, row, ARG_DEPTH)) && rows == (u32)rows && times(&bytes, rows);
    } else {
        bytes = read_argument_alike(arguments, row, ARG_BYTES);
        sized = has_argument(row, ARG_BYTES);
    }
    memory->sized = opaque(sized && !arguments->error);
    memory->bytes = memory->sized ? bytes : 0;
    return opaque(rows);
}

#endif
