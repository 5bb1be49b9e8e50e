/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Processor and kernel memory: registers, order of memory accesses, and reads of kernel structures. */
#ifndef GPUSNOOP_MACHINE_BPF_H
#define GPUSNOOP_MACHINE_BPF_H

#include "shared/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* What depends on the processor: where it keeps a call's arguments, its return address, and a thread's system call.
 * Registers that <bpf/bpf_tracing.h> has names for go by those: PT_REGS_SP(), PT_REGS_RC(). */

/* Both machines have so many. */
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

/* Of struct thread_registers. */
#define EACH_KEPT_REGISTER(DO, REGS)                                                                                   \
    DO(0, (REGS)->bp)                                                                                                  \
    DO(1, (REGS)->bx)                                                                                                  \
    DO(2, (REGS)->r12)                                                                                                 \
    DO(3, (REGS)->r13)                                                                                                 \
    DO(4, (REGS)->r14)                                                                                                 \
    DO(5, (REGS)->r15)

#define FIRST_WORD(OBJECT) CAST((const struct pt_regs*)(OBJECT))->r15

/* At the entry of a function, its return address lies at the stack pointer, and stays there until the return takes it
 * away; arguments on the stack are behind it. */
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

#define THREAD_POINTER(TASK) ((TASK)->thread.fsbase) /* of glibc, which sets it once */
#define THREAD_SELF(POINTER, BYTES) (POINTER)        /* glibc's pthread_self() */

#define WITHOUT_TAG(ADDRESS) (ADDRESS)

#elif defined(__TARGET_ARCH_arm64)

/* As arm64's <asm/unistd.h> does. Another host's <asm/bitsperlong.h> takes the BPF target for a machine of 32 bits. */
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

/* At the entry of a function, its return address is in x30, and the function puts it wherever it likes. In frames it
 * may be signed (FEAT_PAuth), with bits that only the kernel knows how to take off. */
#define STACK_ARGUMENTS(REGS) PT_REGS_SP(REGS)
#define RETURN_POPS 0
#define RETURN_ADDRESS_STAYS false
#define FRAMES_ARE_SIGNED true
#define SIGNED_FROM 48 /* the first bit of an address that may be signed; larger addresses have some more below 52 */
#define RETURN_ADDRESS(REGS) PT_REGS_RET(REGS)
#define READ_RETURN_ADDRESS(TO, REGS) (*(TO) = PT_REGS_RET(REGS), 0)

/* As 64 bits: where clang looks at the lower half of them alone, 6.1 does not see what that says of the whole. */
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

/* The processor ignores the upper eight bits of an address, in which programs keep what they like: where they free, it
 * need not be the same. */
#define WITHOUT_TAG(ADDRESS) ((ADDRESS) & ~0ULL >> 8)

#endif

/* At its return, the stack pointer that a function had at its entry. */
#define SP_AT_ENTRY(REGS) (PT_REGS_SP(REGS) - RETURN_POPS)

#define NO_SYSTEM_CALL -1 /* in place of the number: an exception */

#define REGISTER_VALUE(NUMBER, VALUE) [NUMBER] = VALUE,

/* Order of accesses to words that publish other data, to the front end (src/base/bpf_map.hpp) or another CPU.
 *
 * store_ordered() stores a word after all earlier stores and before all later ones. load_acquire() loads a word before
 * everything that is read later. Words have 64 bits.
 *
 * x86 reorders neither stores with stores nor loads with loads: only the compiler has to keep the order, which costs
 * nothing, while an instruction with a lock would wait until all stores have left the CPU, 100 ns. On arm64 these are
 * atomic instructions with a result, which are full barriers in all kernels (Documentation/bpf/linux-notes, 5.18).
 * Instructions for this very purpose exist only since 6.15 (880442305a39). */

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

/* Memory of the kernel, read by loads that the verifier checks by types: a load that fails gives 0, as one of user
 * memory is refused. bpf_probe_read_kernel() costs 40 to 70 ns a call in its place, and a kernel that is locked down
 * (confidentiality) has no such function: it is called on kernels before 6.2 alone. */

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
