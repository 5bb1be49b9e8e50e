/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Access to the processor and to kernel memory: registers, memory order, reads of kernel structures. */
#ifndef GPUSNOOP_MACHINE_BPF_H
#define GPUSNOOP_MACHINE_BPF_H

#include "shared/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* Processor-specific locations: a call's arguments and return address, and the system call of a thread. Registers for
 * which <bpf/bpf_tracing.h> has macros are read with these macros, for example PT_REGS_SP() and PT_REGS_RC(). */

/* Argument registers that both architectures have. */
#define FIRST_ARGUMENT_REGISTERS(DO, REGS)                                                                             \
    DO(0, PT_REGS_PARM1(REGS))                                                                                         \
    DO(1, PT_REGS_PARM2(REGS))                                                                                         \
    DO(2, PT_REGS_PARM3(REGS))                                                                                         \
    DO(3, PT_REGS_PARM4(REGS))                                                                                         \
    DO(4, PT_REGS_PARM5(REGS))                                                                                         \
    DO(5, PT_REGS_PARM6(REGS))

#if defined(__TARGET_ARCH_x86)

#include <asm/unistd_64.h>

/* psABI of x86-64, 3.2.3 */
#define EACH_ARGUMENT_REGISTER(DO, REGS) FIRST_ARGUMENT_REGISTERS(DO, REGS)

/* Callee-saved registers, in the order of thread_registers.kept. */
#define EACH_KEPT_REGISTER(DO, REGS)                                                                                   \
    DO(0, (REGS)->bp)                                                                                                  \
    DO(1, (REGS)->bx)                                                                                                  \
    DO(2, (REGS)->r12)                                                                                                 \
    DO(3, (REGS)->r13)                                                                                                 \
    DO(4, (REGS)->r14)                                                                                                 \
    DO(5, (REGS)->r15)

#define FIRST_WORD(OBJECT) CAST((const struct pt_regs*)(OBJECT))->r15

/* At function entry, the return address is at the stack pointer, and stays there until the function returns. Stack
 * arguments follow the return address. */
#define STACK_ARGUMENTS(REGS) (PT_REGS_SP(REGS) + 8)
#define RETURN_POPS 8
#define RETURN_ADDRESS_STAYS true
#define FRAMES_ARE_SIGNED false
#define SIGNED_FROM 64
#define RETURN_ADDRESS(REGS) read_word(PT_REGS_SP(REGS))
#define READ_RETURN_ADDRESS(TO, REGS) bpf_probe_read_user(TO, 8, (void*)PT_REGS_SP(REGS))

#define SYSTEM_CALL_NUMBER(REGS) ((REGS)->orig_ax)
#define SYSTEM_CALL_FIRST(REGS) ((REGS)->di)
#define IS_COMPATIBLE(TASK) ((TASK)->thread_info.status & 2) /* TS_COMPAT */

#define THREAD_POINTER(TASK) ((TASK)->thread.fsbase) /* glibc sets it once per thread */
#define THREAD_SELF(POINTER, BYTES) (POINTER)        /* glibc's pthread_self() */

#define WITHOUT_TAG(ADDRESS) (ADDRESS)

#elif defined(__TARGET_ARCH_arm64)

/* Defines the same system call numbers as arm64's <asm/unistd.h>. Sets __BITS_PER_LONG, because on build hosts other
 * than arm64, <asm/bitsperlong.h> treats BPF as a 32-bit target. */
#include <asm/bitsperlong.h>
#undef __BITS_PER_LONG
#define __BITS_PER_LONG 64
#define __ARCH_WANT_NEW_STAT
#define __ARCH_WANT_SYS_CLONE3
#include <asm-generic/unistd.h>

/* AAPCS64, 6.8.2 */
#define EACH_ARGUMENT_REGISTER(DO, REGS)                                                                               \
    FIRST_ARGUMENT_REGISTERS(DO, REGS)                                                                                 \
    DO(6, PT_REGS_PARM7(REGS))                                                                                         \
    DO(7, PT_REGS_PARM8(REGS))

#define EACH_KEPT_REGISTER(DO, REGS)                                                                                   \
    DO(0, (REGS)->regs[19])                                                                                            \
    DO(1, (REGS)->regs[20])                                                                                            \
    DO(2, (REGS)->regs[21])                                                                                            \
    DO(3, (REGS)->regs[22])                                                                                            \
    DO(4, (REGS)->regs[23])                                                                                            \
    DO(5, (REGS)->regs[24])                                                                                            \
    DO(6, (REGS)->regs[25])                                                                                            \
    DO(7, (REGS)->regs[26])                                                                                            \
    DO(8, (REGS)->regs[27])                                                                                            \
    DO(9, (REGS)->regs[28])                                                                                            \
    DO(10, (REGS)->regs[29])                                                                                           \
    DO(11, (REGS)->regs[30])

#define FIRST_WORD(OBJECT) CAST((const struct pt_regs*)(OBJECT))->regs[0]

/* At function entry, the return address is in x30; the function may store it anywhere. Return addresses in stack frames
 * may be signed (FEAT_PAuth), and only the kernel can remove the signature. */
#define STACK_ARGUMENTS(REGS) PT_REGS_SP(REGS)
#define RETURN_POPS 0
#define RETURN_ADDRESS_STAYS false
#define FRAMES_ARE_SIGNED true
#define SIGNED_FROM 48 /* lowest bit that may be part of a signature; comparisons ignore it and all higher bits */
#define RETURN_ADDRESS(REGS) PT_REGS_RET(REGS)
#define READ_RETURN_ADDRESS(TO, REGS) (*(TO) = PT_REGS_RET(REGS), 0)

/* Widened to 64 bits: if clang compares only the lower half of a register, the verifier of Linux 6.1 derives no bounds
 * for that register. */
#define SYSTEM_CALL_NUMBER(REGS)                                                                                       \
    ({                                                                                                                 \
        u64 number_ = (u64)(s64)((struct pt_regs___system_call*)(REGS))->syscallno;                                    \
        barrier_var(number_);                                                                                          \
        number_;                                                                                                       \
    })
#define SYSTEM_CALL_FIRST(REGS) (((struct pt_regs___system_call*)(REGS))->orig_x0)
#define IS_COMPATIBLE(TASK) ((TASK)->thread_info.flags & 1 << 22) /* TIF_32BIT */

#define THREAD_POINTER(TASK) ((TASK)->thread.uw.tp_value)
#define THREAD_SELF(POINTER, BYTES) ((POINTER) - (BYTES))

/* The processor ignores the upper eight bits of an address. Programs may store tags in them, so the address passed to a
 * free may have another tag than the one that the allocation returned. */
#define WITHOUT_TAG(ADDRESS) ((ADDRESS) & ~0ULL >> 8)

#endif

/* For return probes: the stack pointer that the function had at entry. */
#define SP_AT_ENTRY(REGS) (PT_REGS_SP(REGS) - RETURN_POPS)

/* The kernel stores this as the system call number of a thread that is in an exception, not in a system call. */
#define NO_SYSTEM_CALL -1

#define REGISTER_VALUE(NUMBER, VALUE) [NUMBER] = VALUE,

/* Ordered accesses to words that publish other data to the front end (src/base/bpf_map.hpp) or to another CPU.
 * store_ordered() stores a 64-bit word after all earlier stores and before all later ones. load_acquire() loads a
 * 64-bit word before all later loads. x86 reorders neither stores with stores nor loads with loads. So a compiler
 * barrier is enough, which costs nothing; a locked instruction would wait until all stores have left the CPU (100 ns).
 * On arm64, both functions are atomic instructions that return the old value. All kernels implement such instructions
 * with full barriers (Documentation/bpf/linux-notes, 5.18). BPF has load-acquire and store-release instructions only
 * since 6.15 (880442305a39). */

#if defined(__TARGET_ARCH_x86)

#define store_ordered(TO, VALUE)                                                                                       \
    ({                                                                                                                 \
        barrier();                                                                                                     \
        *(volatile __u64*)(TO) = (VALUE);                                                                              \
        barrier();                                                                                                     \
    })
#define load_acquire(FROM)                                                                                             \
    ({                                                                                                                 \
        __u64 loaded_ = *(const volatile __u64*)(FROM);                                                                \
        barrier();                                                                                                     \
        loaded_;                                                                                                       \
    })

#elif defined(__TARGET_ARCH_arm64)

#define store_ordered(TO, VALUE) ((void)__sync_lock_test_and_set((__u64*)(TO), VALUE))
#define load_acquire(FROM) __sync_fetch_and_or((__u64*)(FROM), 0)

#endif

/* Reads kernel memory with plain loads, whose types the verifier checks. A load that faults, or that is from a user
 * address, yields 0. bpf_probe_read_kernel() would cost 40 to 70 ns per call, and is not available under lockdown
 * (confidentiality), so it is used only on kernels before 6.2. */

extern void* bpf_rdonly_cast(const void* object, u32 type) __ksym __weak; /* since Linux 6.2 (a35b9af4ec2c) */

#define HAS_CASTS bpf_ksym_exists(bpf_rdonly_cast)
#define CAST(OBJECT) ((typeof(OBJECT))bpf_rdonly_cast(OBJECT, bpf_core_type_id_kernel(typeof(*(OBJECT)))))

/* Like BPF_CORE_READ(). */
#define READ(OBJECT, ...)                                                                                              \
    ({                                                                                                                 \
        ___type((OBJECT), __VA_ARGS__) value_read;                                                                     \
        if (HAS_CASTS)                                                                                                 \
            value_read = ___arrow(CAST(OBJECT), __VA_ARGS__);                                                          \
        else                                                                                                           \
            value_read = BPF_CORE_READ(OBJECT, __VA_ARGS__);                                                           \
        value_read;                                                                                                    \
    })

/* Reads a 64-bit word whose type the verifier does not know. The address is cast to a type whose first field is a word,
 * and this field is read. */
static inline __attribute__((always_inline)) u64 kernel_word(const void* address)
{
    if (HAS_CASTS)
        return FIRST_WORD(address);
    u64 word = 0;
    bpf_probe_read_kernel(&word, sizeof(word), address);
    return word;
}

/* Copies a string, truncated to `size` bytes, and returns its length including the terminating zero. Copies "" if the
 * string is unreadable. */
static inline __attribute__((always_inline)) s64 kernel_text(char* text, u32 size, const void* from)
{
    static const char format[] = "%s";
    u64 texts[] = {(u64)from};
    /* bpf_snprintf() is allowed even if kernel lockdown forbids bpf_probe_read_kernel_str(). */
    if (HAS_CASTS)
        return bpf_snprintf(text, size, format, texts, sizeof(texts));
    return bpf_probe_read_kernel_str(text, size, from);
}

/* Returns the task as an untrusted pointer. For a trusted pointer, the verifier compares the names of all kernel types
 * four times per field (btf_nested_type_is_trusted()), which took 40% of cudatop's start-up time. Our programs do not
 * need trusted pointers. */
static inline __attribute__((always_inline)) struct task_struct* untrusted(struct task_struct* task)
{
    return HAS_CASTS ? CAST(task) : task;
}

#endif
