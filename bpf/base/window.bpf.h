/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Native stacks. A program reads one block of the stack (the window) and follows frame pointers in it, or copies the
 * stack for the front end. */
#ifndef GPUSNOOP_WINDOW_BPF_H
#define GPUSNOOP_WINDOW_BPF_H

#include "base/process.bpf.h"
#include "shared/stack.h"

/* Copies of a thread's stack, in which the front end finds the callers (src/code/pending_calls.cpp). A copy takes 240
 * ns. One copy is made per stack id, and another one every COPY_AGAIN_EVERY calls, because different callers may have
 * the same id. */

/* Reads from `sp` to the end of the page, because the stack may end there. Returns the number of bytes, or 0 if they do
 * not fit in `room` or are unreadable. */
INLINE u32 read_rest_of_page(void* to, u64 room, u64 sp)
{
    u64 rest = 4096 - (sp & 4095);
    PIN(rest);
    return rest > room || bpf_probe_read_user(to, rest, (void*)sp) ? 0 : rest;
}

/* Copies up to STACK_COPY_BYTES. A read past the stack's end fails completely, so smaller sizes are tried next. */
INLINE u32 copy_stack(u8* to, u64 sp)
{
    if (!bpf_probe_read_user(to, STACK_COPY_BYTES, (void*)sp))
        return STACK_COPY_BYTES;
    if (!bpf_probe_read_user(to, 4096, (void*)sp))
        return 4096;
    return read_rest_of_page(to, 4096, sp);
}

/* True for one in COPY_AGAIN_EVERY calls whose stack is already in the table. */
INLINE bool is_copy_due(u32* calls)
{
    return !(++*calls & (COPY_AGAIN_EVERY - 1));
}

#define KEEP_REGISTER(NUMBER, VALUE) found->kept[NUMBER] = VALUE;

/* Sends a copy of the current thread's stack. */
VERIFIED_ONCE int send_stack_copy(int stack, u32 at)
{
    struct stack_copy* copy = bpf_ringbuf_reserve(&ring, sizeof(*copy) + STACK_COPY_BYTES, 0);
    if (!copy) {
        if (!(at & COPIED_AGAIN))
            lose(LOSS_STACK, 1);
        return 0;
    }
    struct task_struct* task = bpf_get_current_task_btf();
    struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task); /* since 5.15 (dd6e10fbd9fb) */
    copy->type = RECORD_STACK_COPY;
    copy->stack = stack;
    copy->image = image_of(task);
    struct thread_registers* found = &copy->registers;
    found->process = task->tgid;
    found->thread = task->pid;
    found->start_ns = 0;
    found->ip = PT_REGS_IP(regs);
    found->sp = PT_REGS_SP(regs);
    EACH_KEPT_REGISTER(KEEP_REGISTER, regs)
    struct return_instance* replaced = READ(task, utask) ? READ(task, utask, return_instances) : 0;
    for (int i = 0; i < REPLACED_RETURNS; i++) {
        found->replaced[i] = (struct replaced_return){};
        if (!replaced)
            continue;
        found->replaced[i] =
            (struct replaced_return){.slot = READ(replaced, stack), .address = READ(replaced, orig_ret_vaddr)};
        replaced = READ(replaced, next);
    }
    copy->at = at;
    copy->bytes = copy_stack((u8*)(copy + 1), PT_REGS_SP(regs));
    bpf_ringbuf_submit(copy, ring_flags(sizeof(*copy) + STACK_COPY_BYTES));
    return 0;
}

/* Stacks that are found by reading user memory once and following the frame pointers in it. The kernel's own walk reads
 * each frame separately and ends with a page fault after the last one (630 ns for the shortest stack, against 200 ns
 * for reading a whole window). */

struct window {
    u64 word[WINDOW_WORDS];
    struct window_stack stack; /* the stack that is being read */
    u32 known;                 /* number of calls whose stack was already in the table */
    u32 at;                    /* enum copied_at; stored here because the program's stack has no room */
};

PERCPU_ARRAY_MAP(windows, 1, struct window);

/* Known stacks. A stack's hash selects its slot. The first stack in a slot stays there. Later stacks with the same slot
 * are not stored in this table. The front end sets the capacity, a power of two. */
ARRAY_MAP(window_stacks, 1, struct window_stack);

const volatile __u32 window_stacks_mask = 0;

/* Returns the number of bytes of the stack that are in use. The base of a thread's stack is the thread control block
 * (glibc). The base of the first thread's stack is known to the kernel. Other stacks, such as those of coroutines, have
 * no known base, so only the bytes between `sp` and `frame` count. */
INLINE u64 stack_depth(u64 sp, u64 frame)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u64 depth = THREAD_POINTER(task) - sp;
    if (depth >= STACK_FAR_BYTES)
        depth = READ(task, mm, start_stack) - sp;
    if (depth >= STACK_FAR_BYTES)
        depth = frame - sp;
    return depth < STACK_FAR_BYTES ? depth : 0;
}

/* Maximum number of frames that are followed; deeper stacks are read by the kernel's stack walk. A higher limit makes
 * verification slower. */
#ifndef WINDOW_DEPTH
#define WINDOW_DEPTH WINDOW_FRAMES
#endif

/* Follows the frames above the caller. Returns false if there may be more frames, outside the window or beyond
 * WINDOW_DEPTH. A frame pointer that does not point up the stack ends the walk: code without frame pointers uses that
 * register for other values. */
INLINE bool follow_frames(struct window* window, u64 sp, u64 frame)
{
    struct window_stack* stack = &window->stack;
    u64 least = sp;
    /* In code without frame pointers, only the caller and the depth of the stack distinguish stacks. */
    u64 hash = (stack->caller ^ stack_depth(sp, frame)) * 0x9e3779b97f4a7c15ULL;
    stack->depth = 0;
    for (u32 i = 0; i < WINDOW_DEPTH; i++) {
        if (frame < least || frame & 7 || frame - sp >= STACK_FAR_BYTES)
            break;
        u64 at = (frame - sp) >> 3;
        if (at > WINDOW_WORDS - 2)
            return false;
        u64 address = window->word[(at + 1) & (WINDOW_WORDS - 1)];
        stack->address[i] = address;
        stack->depth = i + 1; /* kept in memory, where the verifier does not track it */
        hash = (hash ^ address) * 0x9e3779b97f4a7c15ULL;
        least = frame + 16;
        frame = window->word[at & (WINDOW_WORDS - 1)];
    }
    stack->hash = hash ^ hash >> 29 ?: 1;
    return stack->depth < WINDOW_DEPTH;
}

/* Reads the window. If the stack ends within the window, reads the part that exists. Returns false if nothing is
 * readable. */
INLINE bool read_window(struct window* window, u64 sp)
{
    return !bpf_probe_read_user(window->word, sizeof(window->word), (void*)sp) ||
           read_rest_of_page(window->word, sizeof(window->word), sp);
}

INLINE struct window* window_of_cpu(void)
{
    u32 key = 0;
    return bpf_map_lookup_elem(&windows, &key);
}

/* Returns the stack's id, or a negative value if the stack must be read another way. `caller` is the return address. At
 * function entry, pass 0: the return address is then read from the top of the stack. Must be called with preemption
 * disabled (guard_calls_begin()), because the window is per CPU. */
VERIFIED_ONCE int window_stack(u64 sp, u64 frame, u64 caller, u32 at)
{
    struct window* window = GUARDED_CALLS && window_stacks_mask ? window_of_cpu() : 0;
    if (!window)
        return -1;
    window->at = at;
    window->stack.caller = caller;
    if (!read_window(window, sp)) {
        if (!window->stack.caller)
            window->stack.caller = read_word(sp);
        return -1;
    }
    if (!window->stack.caller)
        window->stack.caller = window->word[0];
    if (!follow_frames(window, sp, frame))
        return -1;
    u64 hash = window->stack.hash;
    u32 key = (u32)(hash >> 32) & window_stacks_mask;
    struct window_stack* place = bpf_map_lookup_elem(&window_stacks, &key);
    if (!place)
        return -1;
    u64 there = place->hash;
    if (!there) {
        there = __sync_val_compare_and_swap(&place->hash, 0, hash) ?: hash;
        if (there == hash) {
            place->caller = window->stack.caller;
            place->depth = window->stack.depth;
            __builtin_memcpy(place->address, window->stack.address, sizeof(place->address));
            send_stack_copy(key | STACK_OF_WINDOW, window->at);
        }
    } else if (there == hash && is_copy_due(&window->known)) {
        send_stack_copy(key | STACK_OF_WINDOW, window->at | COPIED_AGAIN);
    }
    return there == hash ? (int)(key | STACK_OF_WINDOW) : -1;
}

/* Like window_stack(), but for a thread at any point of its code. The stack begins with the instruction pointer. */
INLINE int window_stack_of(const struct pt_regs* regs, u32 at)
{
    if (!window_stacks_mask || !GUARDED_CALLS || FRAMES_ARE_SIGNED)
        return -1;
    guard_calls_begin();
    int stack = window_stack(PT_REGS_SP(regs), PT_REGS_FP(regs), PT_REGS_IP(regs), at);
    guard_calls_end();
    return stack;
}

/* Returns the caller in the last stack that was read on this CPU. */
INLINE u64 caller_in_window(void)
{
    struct window* window = window_of_cpu();
    return window ? window->stack.caller : 0;
}

#endif
