/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Memory of the kernel, read by loads that the verifier checks by types: a load that fails gives 0, as one of user
 * memory is refused. bpf_probe_read_kernel() costs 40 to 70 ns a call in its place, and a kernel that is locked down
 * (confidentiality) has no such function: it is called on kernels before 6.2 alone. */
#ifndef GPUSNOOP_KERNEL_MEMORY_BPF_H
#define GPUSNOOP_KERNEL_MEMORY_BPF_H

#include "shared/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "base/machine.bpf.h"

extern void* bpf_rdonly_cast(const void* object, u32 type) __ksym __weak; /* 6.2, a35b9af4ec2c */

#define HAS_CASTS bpf_ksym_exists(bpf_rdonly_cast)
#define CAST(OBJECT) ((typeof(OBJECT))bpf_rdonly_cast(OBJECT, bpf_core_type_id_kernel(typeof(*(OBJECT)))))

/* As BPF_CORE_READ(). */
#define READ(OBJECT, ...)                                                                                              \
    ({                                                                                                                 \
        ___type((OBJECT), __VA_ARGS__) value_read;                                                                     \
        if (HAS_CASTS)                                                                                                 \
            value_read = ___arrow(CAST(OBJECT), __VA_ARGS__);                                                          \
        else                                                                                                           \
            value_read = BPF_CORE_READ(OBJECT, __VA_ARGS__);                                                           \
        value_read;                                                                                                    \
    })

/* A word that no type tells of: taken for the first one of a type that begins with one. */
static inline __attribute__((always_inline)) u64 kernel_word(const void* address)
{
    if (HAS_CASTS)
        return FIRST_WORD(address);
    u64 word = 0;
    bpf_probe_read_kernel(&word, sizeof(word), address);
    return word;
}

/* How many bytes that are, its zero included; it may have been cut to fewer. "" where it cannot be read. */
static inline __attribute__((always_inline)) s64 kernel_text(char* text, u32 size, const void* from)
{
    static const char format[] = "%s";
    u64 texts[] = {(u64)from};
    if (HAS_CASTS)
        return bpf_snprintf(text, size, format, texts, sizeof(texts)); /* which is there in any mode */
    return bpf_probe_read_kernel_str(text, size, from);
}

/* The same task, of which the verifier is not to know whether its pointers are to be trusted: nobody here needs that,
 * and it looks at all names of the kernel's types, four times for each of them (btf_nested_type_is_trusted()). That
 * took 40 % of cudatop's start. */
static inline __attribute__((always_inline)) struct task_struct* untrusted(struct task_struct* task)
{
    return HAS_CASTS ? CAST(task) : task;
}

#endif
