/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A call's stack by one read of it, in which frame pointers are followed: the kernel reads each frame by itself, and
 * ends with a page fault where they do (630 ns for the shortest stack, against 200 for the whole window). */
#ifndef GPUSNOOP_WINDOW_BPF_H
#define GPUSNOOP_WINDOW_BPF_H

#include "base/stack_copy.bpf.h"
#include "shared/window.h"

struct window {
    u64 word[WINDOW_WORDS];
    struct window_stack stack; /* being put together */
    u32 known;                 /* calls whose stack had its place */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct window);
} windows SEC(".maps");

/* A stack is found by its hash, and has the place that this says unless another one has it. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1); /* set by the front end, a power of two */
    __type(key, u32);
    __type(value, struct window_stack);
} window_stacks SEC(".maps");

const volatile __u32 window_stacks_mask = 0;

/* The frames behind the caller; false where they lead out of the window and may go on there. What is no address further
 * up the stack is no frame: code without frame pointers keeps something else in that register. */
INLINE bool follow_frames(struct window* window, u64 sp, u64 frame)
{
    struct window_stack* stack = &window->stack;
    u64 least = sp;
    /* Who calls, and how far up the first frame is: what lies between has no frame pointers. */
    u64 hash = (window->word[0] ^ (frame - sp < STACK_FAR_BYTES ? frame - sp : 0)) * 0x9e3779b97f4a7c15ULL;
    stack->depth = 0;
    for (u32 i = 0; i < WINDOW_FRAMES; i++) {
        if (frame < least || frame & 7 || frame - sp >= STACK_FAR_BYTES)
            break;
        u64 at = (frame - sp) >> 3;
        if (at > WINDOW_WORDS - 2)
            return false;
        u64 address = window->word[(at + 1) & (WINDOW_WORDS - 1)];
        stack->address[i] = address;
        stack->depth = i + 1; /* in memory the verifier forgets it, and all ends of the loop are one */
        hash = (hash ^ address) * 0x9e3779b97f4a7c15ULL;
        least = frame + 16;
        frame = window->word[at & (WINDOW_WORDS - 1)];
    }
    stack->hash = hash ^ hash >> 29 ?: 1;
    return stack->depth < WINDOW_FRAMES;
}

INLINE struct window* window_of_cpu(void)
{
    u32 key = 0;
    return bpf_map_lookup_elem(&windows, &key);
}

/* The stack's id; negative where it is to be taken otherwise. Verified once, and where it is not wanted in no time at
 * all. Under the guard: the window is the CPU's. */
__attribute__((noinline)) int window_stack(u64 sp, u64 frame)
{
    struct window* window = GUARDED_CALLS && window_stacks_mask ? window_of_cpu() : 0;
    if (!window)
        return -1;
    if (bpf_probe_read_user(window->word, sizeof(window->word), (void*)sp)) {
        window->word[0] = read_word(sp); /* near the stack's end */
        return -1;
    }
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
            place->depth = window->stack.depth;
            __builtin_memcpy(place->address, window->stack.address, sizeof(place->address));
            send_stack_copy(key | STACK_OF_WINDOW, COPIED_AT_ENTRY);
        }
    } else if (there == hash && is_copied_again(&window->known)) {
        send_stack_copy(key | STACK_OF_WINDOW, COPIED_AT_ENTRY | COPIED_AGAIN);
    }
    return there == hash ? (int)(key | STACK_OF_WINDOW) : -1;
}

/* The return address of the call that this was for. */
INLINE u64 caller_in_window(void)
{
    struct window* window = window_of_cpu();
    return window ? window->word[0] : 0;
}

#endif
