/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Programs that every kernel refuses, each for a different reason (refusal_test.cpp). */
#include "shared/kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, u64);
} invalid_map SEC(".maps");

extern void bpf_no_such_function(void) __ksym __weak;

SEC("?uprobe")
int calls_nothing(struct pt_regs* ctx)
{
    bpf_no_such_function();
    return 0;
}

SEC("?uprobe")
int reads_anywhere(struct pt_regs* ctx)
{
    return *(volatile int*)PT_REGS_PARM1(ctx);
}

SEC("?uprobe")
int loops_too_long(struct pt_regs* ctx)
{
    for (u32 i = 0; i < 10000000; i++)
        __asm__ volatile("" : "+r"(i));
    return 0;
}
