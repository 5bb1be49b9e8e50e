/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Which row of the probe table fired, and its arguments. */
#ifndef GPUSNOOP_PROBE_BPF_H
#define GPUSNOOP_PROBE_BPF_H

#include "base/nested_call.bpf.h"
#include "shared/probe.h"

const volatile struct probe_row probe_rows[PROBE_ROWS_MAX];

/* Set in the tracefs tier, where all probes of an event share one cookie: the event's number. Which of them fired is
 * told by the address within its page, which no address-space randomization changes; no event has two alike. */
const volatile bool rows_by_address = false;

struct probe_place {
    u32 event;
    u32 in_page;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct probe_place);
    __type(value, u32);
} rows_by_place SEC(".maps");

/* The barrier keeps clang from merging the cases into one load at a computed offset, which the verifier refuses on the
 * context. */
#define REGISTER_CASE(NUMBER, VALUE)                                                                                   \
    case NUMBER:                                                                                                       \
        v = VALUE;                                                                                                     \
        barrier_var(v);                                                                                                \
        break;

INLINE u64 register_word(struct pt_regs* ctx, u32 word)
{
    u64 v = 0;
    switch (word) {
        EACH_ARGUMENT_REGISTER(REGISTER_CASE, ctx)
    }
    return v;
}

INLINE u32 row_number_by_address(struct pt_regs* ctx, u32 cookie)
{
    struct probe_place place = {.event = cookie, .in_page = PT_REGS_IP(ctx) & 4095};
    u32* number = bpf_map_lookup_elem(&rows_by_place, &place);
    if (!number)
        lose(LOSS_ADDRESS, 1);
    return number ? *number : 0;
}

INLINE const volatile struct probe_row* probe_row(u32 number)
{
    return &probe_rows[(number - 1) & (PROBE_ROWS_MAX - 1)];
}

INLINE bool is_nested(struct pt_regs* ctx, u32 number)
{
    return RETURN_ADDRESS_STAYS && forwarding_files && is_nested_entry(ctx, probe_row(number)->counted_as);
}

/* Index in the probe table + 1 (the cookie), or 0 where the probe is idle, the call is part of another one, or its row
 * is unknown, which is counted as lost. `only` is the number of the one row that the program is for, or 0: it is
 * constant where it is set, so no cookie is needed, and the verifier drops all that is for other rows. */
INLINE u32 row_number(struct pt_regs* ctx, u32 only)
{
    if (only) {
        if (being_exchanged() && is_idle(ctx))
            return 0;
        return is_nested(ctx, only) ? 0 : only;
    }
    u64 cookie = bpf_get_attach_cookie(ctx);
    if (idle(cookie))
        return 0;
    u32 number = rows_by_address ? row_number_by_address(ctx, (u32)cookie) : (u32)cookie & ~COOKIE_SECOND;
    return is_nested(ctx, number) ? 0 : number;
}

/* The argument registers, the constants, and the block where it is read at once. */
struct call_words {
    u64 word[WORDS];
};

/* Where the row's block of memory lies for this call; 0 where the row has none. */
INLINE u64 block_address(struct pt_regs* ctx, const volatile struct probe_row* row)
{
    u32 base = row->block_base;
    if (base == BLOCK_NONE)
        return 0;
    return base == BLOCK_STACK ? STACK_ARGUMENTS(ctx) : register_word(ctx, base - BLOCK_REGISTER);
}

#define REGISTER_STORE(NUMBER, VALUE) words->word[NUMBER] = VALUE;

INLINE void read_registers(struct pt_regs* ctx, struct call_words* words)
{
    __builtin_memset(words, 0, sizeof(*words));
    EACH_ARGUMENT_REGISTER(REGISTER_STORE, ctx)
    if (WORDS_HAVE_CONSTANTS)
        words->word[WORD_ONE & (WORDS - 1)] = 1;
}

/* Reads the registers, and the row's block from this address. Not 0 where that was unreadable; its words are 0 then.
 * The block costs 35 ns, however small it is. */
INLINE u64 read_words(struct pt_regs* ctx, const volatile struct probe_row* row, u64 block, struct call_words* words)
{
    read_registers(ctx, words);
    if (row->block_base == BLOCK_NONE)
        return 0;
    u32 bytes = ((row->block_words - 1u) & (LAUNCH_WORDS_MAX - 1)) * 8 + 8;
    return bpf_probe_read_user(&words->word[WORD_BLOCK], bytes, (void*)block);
}

INLINE u64 argument(const volatile struct probe_row* row, const struct call_words* words, u32 which)
{
    return operand_part(operand_word(words->word, row->args[which].word), row->args[which].part);
}

/* The one argument of a call that lies in a register, without reading the rest. */
INLINE u64 register_argument(struct pt_regs* ctx, const volatile struct probe_row* row, u32 which)
{
    u64 v = register_word(ctx, row->args[which].word);
    return row->args[which].part == PART_LOW ? (u32)v : v;
}

INLINE bool has_argument(const volatile struct probe_row* row, u32 which)
{
    return operand_present(row->args[which].word);
}

/* Arguments of a call, read one by one. */
struct arguments {
    u64 word[WORD_BLOCK];
    u64 value; /* the last one that was read, before its part was taken */
    u64 block; /* where the row's block lies */
    u64 error; /* not 0: one lay in unreadable memory, and was taken for 0 */
};

#if WORDS_HAVE_CONSTANTS
#define CONSTANT_ONE [WORD_ONE] = 1
#else
#define CONSTANT_ONE
#endif

INLINE void begin_arguments(struct pt_regs* ctx, const volatile struct probe_row* row, struct arguments* arguments)
{
    *arguments = (struct arguments){.word = {EACH_ARGUMENT_REGISTER(REGISTER_VALUE, ctx) CONSTANT_ONE},
                                    .block = block_address(ctx, row)};
}

/* An argument wherever it lies. Paths multiply where many are read, and the verifier walks through all of them; but not
 * beyond where they meet with the same knowledge: so this one leaves values behind of which nothing is known. */
INLINE u64 read_argument(struct arguments* arguments, const volatile struct probe_row* row, u32 which)
{
    u32 word = row->args[which].word;
    if (word < WORD_BLOCK)
        arguments->value = arguments->word[word & (WORD_BLOCK - 1)];
    else if (!WORDS_HAVE_CONSTANTS && word >= WORD_ZERO)
        arguments->value = word - WORD_ZERO;
    else
        arguments->error |=
            bpf_probe_read_user(&arguments->value, 8, (void*)(arguments->block + (word - WORD_BLOCK) * 8));
    return operand_part(arguments->value, row->args[which].part);
}

/* The same where many are read one after the other: kernels before 6.8 tell a number that was stored from bytes that a
 * helper has written, so what is left behind is of one kind. That costs newer ones more than it saves. */
INLINE u64 read_argument_alike(struct arguments* arguments, const volatile struct probe_row* row, u32 which)
{
    read_argument(arguments, row, which);
    arguments->value = opaque(arguments->value);
    return operand_part(arguments->value, row->args[which].part);
}

#define BYTES_MAX (1ULL << 48) /* more than there are addresses */

INLINE bool times(u64* bytes, u64 factor)
{
    if (factor && *bytes > BYTES_MAX / factor)
        return false;
    *bytes *= factor;
    return true;
}

#endif
