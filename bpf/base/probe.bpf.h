/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Probe hits: the decision whether a hit counts, its row in the probe table, the call's arguments, and the common
 * prologue of programs. */
#ifndef GPUSNOOP_PROBE_BPF_H
#define GPUSNOOP_PROBE_BPF_H

#include "base/process.bpf.h"
#include "base/thread.bpf.h"
#include "shared/probe.h"

/* Switches from probes on single processes (the first attachment) to probes on all processes (the second) while calls
 * are in flight. The second attachment is made before the first is removed, and every call is counted exactly once. */

/* True if the programs of the second attachment must filter by target_pids. The kernel applies this filter to the first
 * attachment, but cannot apply it to the second. attach_phase then stays ATTACH_BOTH for the rest of the run, because
 * is_idle_now() applies the filter only in this phase. */
const volatile bool filter_second = false;

__u32 attach_phase = ATTACH_FIRST; /* set by the front end */

INLINE u64 hook_bit(u64 cookie)
{
    return 1ULL << (cookie >> COOKIE_HOOK_SHIFT & (HOOKS_MAX - 1));
}

INLINE bool is_switching_probes(void)
{
    return attach_phase == ATTACH_PENDING || attach_phase == ATTACH_BOTH;
}

/* While both attachments exist, a thread that hits a probe runs the program of the second attachment and then that of
 * the first, because the kernel puts a new consumer of a uprobe at the head of its list. attach_phase may change
 * between the two runs. So the second attachment's program marks the hook as handled, and the first attachment's
 * program skips marked hooks. The mark need not be cleared: once a thread has seen the new phase, it never sees the old
 * phase again. */
OWN_FRAME int is_idle_now(u64 cookie, u32 phase)
{
    bool second = cookie & COOKIE_SECOND;
    if (phase != ATTACH_BOTH)
        return phase != ATTACH_PENDING || second;
    struct task_struct* task = bpf_get_current_task_btf();
    if (filter_second && second && !is_target(task))
        return 1;
    struct thread_state* thread = thread_state_create(task);
    if (!thread) {
        lose(LOSS_START, 1);
        return 1;
    }
    if (second)
        thread->handled_by_second |= hook_bit(cookie);
    return !second && thread->handled_by_second & hook_bit(cookie);
}

/* True if the probe with this cookie must not count the call, because a probe of the other attachment (the first or the
 * second) counts the call. */
INLINE bool is_idle_cookie(u64 cookie)
{
    u32 phase = attach_phase;
    return (cookie & COOKIE_SECOND) != phase && is_idle_now(cookie, phase);
}

INLINE bool is_idle(struct pt_regs* ctx)
{
    return is_idle_cookie(bpf_get_attach_cookie(ctx));
}

/* True if this probe belongs to the second attachment, which does not count calls yet. Its session program must not
 * skip the return of the current call. If attach_phase changes during the call, this program handles the return. */
INLINE bool becomes_active(struct pt_regs* ctx)
{
    return attach_phase == ATTACH_PENDING && bpf_get_attach_cookie(ctx) & COOKIE_SECOND;
}

/* Driver calls nested in another driver call. A driver may call or jump to a second driver (WSL, vGPU interposers) or
 * to HIP (ZLUDA). Only the outermost call counts, with its result and duration. */

/* Bitmap of the drivers that share a process with another driver. Bit N modulo 64 is that of driver file number N. Only
 * calls of these drivers are checked for nesting. While no bit is set, testing the bitmap costs one load and one branch
 * per call. On arm64, no call is checked, because the check needs too much stack there. The front end sets the bits. */
__u64 forwarding_files = 0;

INLINE u32 driver_number(u64 cookie)
{
    return cookie >> COOKIE_WORD_SHIFT;
}

INLINE bool may_forward(u64 cookie)
{
    return cookie & COOKIE_OF_DRIVER && forwarding_files >> (driver_number(cookie) & 63) & 1;
}

static long note_file(struct task_struct* task, struct vm_area_struct* vma, struct mapped_file** mapped)
{
    struct file* file = vma->vm_file;
    (*mapped)->start = vma->vm_start;
    (*mapped)->end = vma->vm_end;
    (*mapped)->file = file ? opaque((u64)file->f_inode->i_sb->s_dev << 32 ^ file->f_inode->i_ino) : 0;
    return 0;
}

#define MAPPINGS_LOCKED (-16) /* -EBUSY: bpf_find_vma() does not wait for mmap_lock (since Linux 5.17) */

/* Identifies the file mapped at an address. Returns 0 if no file is mapped there. `mapped` holds the mapping that the
 * last successful lookup found, and receives the new one. While the mappings are locked, only an address in that
 * mapping has a known file; for any other address, the result is 0. */
INLINE u64 file_at(struct task_struct* task, struct mapped_file* mapped, u64 address)
{
    if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_find_vma))
        return 0;
    long error = bpf_find_vma(task, address, note_file, &mapped, 0);
    bool same = error == MAPPINGS_LOCKED && address - mapped->start < mapped->end - mapped->start;
    return !error || same ? mapped->file : 0;
}

/* True if a call of a function in driver file `file`, made from address `caller`, is nested in the outer call. Called
 * when the outer call's return address is still on the stack. Even then, the outer call may have returned, so the file
 * that contains `caller` decides. A call of the same driver is nested if the driver itself makes it. A call of another
 * driver is not nested if it is made from the file that made the outer call. */
INLINE bool is_around(struct task_struct* task, struct thread_state* thread, u32 file, u64 caller, u64 ip)
{
    u64 from = file_at(task, &thread->mapped[ADDRESS_OF_CALLER], caller);
    if (thread->outer.file == file)
        return from && from == file_at(task, &thread->mapped[ADDRESS_OF_FUNCTION], ip);
    return !from || from != file_at(task, &thread->mapped[ADDRESS_OF_OUTER_CALLER], thread->outer.frame.return_address);
}

/* True if the outer call has jumped to a function of this kind in this file, which must be another driver's. Both calls
 * then have the same stack pointer and return address. If the outer call has a return probe, the return address on the
 * stack now points to the trampoline, which is never the case in a new call. If the outer call has no return probe, a
 * new call from the same address looks like a jump. In this case, the function must be of the same kind as the outer
 * call, and only the first hit of each hook in that file counts as a jump. */
INLINE bool is_jump(struct task_struct* task, struct outer_call* outer, u32 file, u64 caller, u32 kind, u64 hook)
{
    if (outer->file == file)
        return false;
    if (outer->frame.return_address != caller)
        return in_trampoline(task, caller);
    if (outer->kind != kind)
        return false;
    if (outer->jumped_to != file)
        outer->jump_hooks = 0;
    outer->jumped_to = file;
    bool first = !(outer->jump_hooks & hook);
    outer->jump_hooks |= hook;
    return first;
}

/* Returns 1 if the call is nested in the thread's outer call, or if the outer call has jumped to it. Otherwise, records
 * the call as the new outer call and returns 0. `probe` is the cookie with its lower half replaced by the kind of
 * call. */
VERIFIED_ONCE int is_part_of_outer(u64 sp, u64 caller, u64 fp, u64 ip, u64 probe)
{
    PIN(fp); /* unused on x86; without PIN, clang leaves the register unset in callers */
    struct task_struct* task = bpf_get_current_task_btf();
    struct thread_state* thread = thread_state_create(task);
    if (!thread) {
        lose(LOSS_START, 1);
        return 0;
    }
    struct outer_call* outer = &thread->outer;
    u32 file = driver_number(probe), kind = probe;
    if (outer->frame.sp == sp
            ? is_jump(task, outer, file, caller, kind, hook_bit(probe))
            : outer->frame.sp && is_running(task, &outer->frame, sp, fp) && is_around(task, thread, file, caller, ip))
        return 1;
    *outer = (struct outer_call){.frame = {.sp = sp, .return_address = caller}, .file = file, .kind = kind};
    return 0;
}

OWN_FRAME int is_nested_entry(struct pt_regs* ctx, u32 kind)
{
    u64 cookie = bpf_get_attach_cookie(ctx), caller = 0;
    if (!may_forward(cookie) || READ_RETURN_ADDRESS(&caller, ctx))
        return 0;
    return is_part_of_outer(PT_REGS_SP(ctx), caller, PT_REGS_FP(ctx), PT_REGS_IP(ctx),
                            (cookie & ~0xffffffffULL) | kind);
}

/* Session programs skip the return of a nested call. Other return probes recognize a nested call because an outer call
 * is still recorded, either further up the stack, or at the same stack pointer but in another file. */
OWN_FRAME int is_nested_return(u64 cookie, u64 sp)
{
    struct thread_state* thread = may_forward(cookie) ? thread_state(bpf_get_current_task_btf()) : 0;
    if (!thread)
        return 0;
    struct outer_call* outer = &thread->outer;
    if (outer->frame.sp == sp && outer->file == driver_number(cookie)) {
        outer->frame.sp = 0;
        return 0;
    }
    return outer->frame.sp >= sp && outer->frame.sp - sp <= OUTER_STACK_MAX;
}

INLINE bool returns_nested(struct pt_regs* ctx)
{
    return RETURN_ADDRESS_STAYS && forwarding_files && is_nested_return(bpf_get_attach_cookie(ctx), SP_AT_ENTRY(ctx));
}

/* Finds the row of the probe that fired, and reads the arguments of the call. */

const volatile struct probe_row probe_rows[PROBE_ROWS_MAX];

/* True if probes are attached through tracefs. All probes of an event then share one cookie, the event's number. So
 * each probe is identified by its address modulo the page size. Address-space randomization does not change this
 * value, and it is unique within an event. */
const volatile bool rows_by_address = false;

struct probe_place {
    u32 event;
    u32 in_page;
};

HASH_MAP(rows_by_place, 65536, struct probe_place, u32);

/* Without PIN, clang merges the cases into one load at a computed offset, which the verifier rejects for accesses to
 * the context. */
#define REGISTER_CASE(NUMBER, VALUE)                                                                                   \
    case NUMBER:                                                                                                       \
        v = VALUE;                                                                                                     \
        PIN(v);                                                                                                        \
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

/* Returns the number of the row (index in the probe table + 1, from the cookie). Returns 0 if the probe is idle, if the
 * call is nested, or if the row is unknown, which counts as a loss. If the program handles a single row, `only` is the
 * number of this row, else 0. A nonzero `only` is a constant, so no cookie is needed, and the verifier removes the code
 * for other rows. */
INLINE u32 row_number(struct pt_regs* ctx, u32 only)
{
    if (only) {
        if (is_switching_probes() && is_idle(ctx))
            return 0;
        return is_nested(ctx, only) ? 0 : only;
    }
    u64 cookie = bpf_get_attach_cookie(ctx);
    if (is_idle_cookie(cookie))
        return 0;
    u32 number = rows_by_address ? row_number_by_address(ctx, (u32)cookie) : (u32)cookie & ~COOKIE_SECOND;
    return is_nested(ctx, number) ? 0 : number;
}

/* Words of a launch: argument registers, constants, and the row's whole memory block. */
struct call_words {
    u64 word[WORDS];
};

/* Returns the address of the memory block that holds the call's arguments, or 0 if all arguments are in registers. */
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

/* Reads the argument registers, and the call's memory block at address `block`. Returns nonzero if the block is
 * unreadable; the block's words are then 0. Reading a block costs 35 ns, whatever its size. */
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

/* Returns an argument that is in a register, without reading the other registers. */
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
    u64 value; /* the last word that was read */
    u64 block; /* address of the call's memory block; 0: none */
    u64 error; /* nonzero if an argument was unreadable; such an argument reads as 0 */
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

/* Reads an argument from a register or from the block. The verifier knows nothing about the value that is read, so
 * after this function it treats all paths as one. */
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

/* Like read_argument(), for programs that read many arguments. Before Linux 6.8, the verifier distinguishes a stack
 * slot that the program wrote from one that a BPF helper wrote, and verifies the rest of the program for each
 * combination. So this function hides the value from the verifier. On newer kernels, hiding the value costs more than
 * it saves. */
INLINE u64 read_argument_alike(struct arguments* arguments, const volatile struct probe_row* row, u32 which)
{
    read_argument(arguments, row, which);
    FORGET(arguments->value);
    return operand_part(arguments->value, row->args[which].part);
}

#define BYTES_MAX (1ULL << 48) /* larger than the address space */

/* Multiplies *bytes by `factor`. Returns false if the product exceeds BYTES_MAX. */
INLINE bool multiply_checked(u64* bytes, u64 factor)
{
    if (factor && *bytes > BYTES_MAX / factor)
        return false;
    *bytes *= factor;
    return true;
}

/* Start of each probe program: applies the filters, and finds the probe's row in the probe table. */

#ifdef SHOWS_WAITING /* defined before all includes, by tools that show waits in progress */
#include "base/left_wait.bpf.h"

bool has_long_wait = false; /* set by the front end while a thread has been in a wait for more than LONG_WAIT_NS */

INLINE void check_left_wait(struct pt_regs* ctx)
{
    if (has_long_wait)
        end_left_wait(PT_REGS_SP(ctx), LONG_WAIT_NS);
}
#else
INLINE void check_left_wait(struct pt_regs* ctx) {}
#endif

INLINE u32 fired_row(struct pt_regs* ctx, u32 only)
{
    check_left_wait(ctx);
    return row_number(ctx, only);
}

/* Returns the row number of the probe that fired. Returns 0 if the thread is not traced, or in the cases described at
 * row_number(). */
INLINE u32 traced_row_of(struct pt_regs* ctx, struct task_struct* task, u32 only)
{
    return is_traced(task) ? fired_row(ctx, only) : 0;
}

INLINE u32 traced_row(struct pt_regs* ctx, struct task_struct* task)
{
    return traced_row_of(ctx, task, 0);
}

/* Like traced_row(), but ignores the filters by thread and name. */
INLINE u32 traced_row_of_process(struct pt_regs* ctx, struct task_struct* task)
{
    return is_traced_process(task) ? fired_row(ctx, 0) : 0;
}

/* Counts a loss for a return whose entry was not recorded. The thread must be traced, else nothing is counted. With
 * of_process, it is enough that the thread's process is traced. */
OWN_FRAME int lose_unmatched_return(struct task_struct* task, u32 of_process)
{
    if (task && (of_process ? is_traced_process(task) : is_traced(task)))
        lose(LOSS_END, 1);
    return 0;
}

/* A call that is tracked but not counted. It changes state on which later calls depend, for example the current
 * context. */
struct followed {
    struct task_struct* task;
    struct thread_state* thread; /* set only when the call returns */
    struct open_call* call;
    const volatile struct probe_row* row;
};

/* Index of the word that holds the row's number in an open call. Programs define the other words. */
#define FOLLOWED_ROW 0
#define RETURN_IGNORED 0 /* stored instead of the row's number if the return needs no action */

/* Begins to track a call. Returns false if the probe's hit is ignored, or if there is no room for the call. */
INLINE bool follow_call(struct pt_regs* ctx, u64 part, struct followed* followed)
{
    followed->task = bpf_get_current_task_btf();
    u32 number = traced_row_of_process(ctx, followed->task);
    if (!number)
        return false;
    followed->row = probe_row(number);
    followed->call = open_call_of(ctx, followed->task, part);
    if (!followed->call)
        return false;
    followed->call->word[FOLLOWED_ROW] = number;
    return true;
}

/* Marks that the call's return needs no action. The call stays open, because otherwise a separate return probe would
 * count the return as a loss. */
INLINE int ignore_return(struct followed* followed)
{
    followed->call->word[FOLLOWED_ROW] = RETURN_IGNORED;
    return 0;
}

/* Ends a tracked call. Returns false if the return needs no action, or if the call was not tracked. An untracked call
 * of a traced process counts as a loss. */
INLINE bool followed_returns(struct pt_regs* ctx, u64 part, struct followed* followed)
{
    followed->task = bpf_get_current_task_btf();
    followed->thread = thread_state(followed->task);
    followed->call = followed->thread ? close_call(ctx, followed->thread, part) : 0;
    if (!followed->call) {
        lose_unmatched_return(followed->task, true);
        return false;
    }
    u32 number = followed->call->word[FOLLOWED_ROW];
    followed->row = probe_row(number);
    return number != RETURN_IGNORED;
}

#endif
