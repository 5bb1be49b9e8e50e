/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Python frames of a thread, read from its interpreter's memory. The front end finds the layout of that memory
 * (src/code/python_interpreter.cpp). A frame is recorded as two addresses: its code and its instruction. When code is
 * first seen, its name and line table are sent to the front end. The code is running at that time, so its memory is
 * valid. */
#ifndef GPUSNOOP_PYTHON_BPF_H
#define GPUSNOOP_PYTHON_BPF_H

#include "base/common.bpf.h"
#include "base/process.bpf.h"
#include "base/window.bpf.h"
#include "shared/python.h"
#include "shared/stack.h"

/* Frames are adjacent in memory, so one read fetches many of them. That takes 12 ns per frame, instead of 75 ns. */
#define FRAME_BYTES 80 /* bytes to read of a frame that is not a separate heap object */
#define FRAME_OBJECT_BYTES 112
#define DATA_WINDOW 4176     /* bytes read from the interpreter's stack, in which callers precede their callees */
#define C_WINDOW 2048        /* bytes read from the thread's stack, which holds the frames made by C code */
#define FRAME_FIELDS_MAX 264 /* maximum offset of a field in a frame */

struct python_walk {
    /* Memory read from the interpreter's stack: its address, and the maximum offset at which it holds a whole frame. */
    u64 data_start, data_span;
    u64 c_start, c_span; /* the same for the memory read from the thread's stack */
    u64 frame;           /* address of the next frame to read */
    u64 sp;
    u64 from_c;     /* flag of the next frame: PYTHON_FROM_C or 0 */
    u64 depth_of_c; /* bytes of stack between the stack pointer and the innermost frame made by C code; 0: unknown */
    struct python_stack stack;
    /* Variables that do not fit on the program's stack (512 bytes per call chain before 6.13). */
    u64 word, table;
    u32 place, pid;
    u64 caller;
    u32 known; /* number of calls whose stack was already in the table */
    bool is_new;
    struct python_code_key code;
    u8 bytes[DATA_WINDOW + C_WINDOW + FRAME_FIELDS_MAX];
};

PERCPU_ARRAY_MAP(python_walks, 1, struct python_walk);

/* Replaces python_walks on kernels before 6.15, which do not allow global functions to be called with preemption
 * disabled (GUARDED_CALLS). */
TASK_STORAGE_MAP(python_walks_of_threads, struct python_walk);

INLINE struct python_walk* python_walk_of(struct task_struct* task)
{
    u32 key = 0;
    return GUARDED_CALLS ? bpf_map_lookup_elem(&python_walks, &key)
                         : bpf_task_storage_get(&python_walks_of_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Layouts of interpreters, by process id. */
HASH_MAP(pythons, 4096, u32, struct python_layout);

/* The front end sets the capacity, a power of two. */
ARRAY_MAP(python_stacks, 1, struct python_stack);

HASH_MAP(python_codes, PYTHON_CODES, struct python_code_key, u8);

#define CLOCK_TICK_NS 10000000 /* USER_HZ is 100 */

/* True if Python stacks are requested. If false, the front end does not create the Python tables. */
const volatile bool follow_python = false;
const volatile __u32 python_stacks_mask = 0;
__u32 pythons_known = 0; /* upper bound of the number of entries in `pythons`; if 0, no stack is searched for Python */

INLINE u64 mixed(u64 hash, u64 word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    return hash ^ hash >> 29;
}

/* Reads a frame into walk->bytes if it is not yet there. Returns the frame's offset in walk->bytes, or ~0 if the frame
 * is unreadable. */
INLINE u64 window_with(struct python_walk* walk, u64 frame, bool on_heap)
{
    u64 at = frame - walk->data_start;
    if (at <= walk->data_span)
        return at;
    at = frame - walk->c_start;
    if (at <= walk->c_span)
        return DATA_WINDOW + at;
    if (!on_heap && frame - walk->sp < STACK_FAR_BYTES) {
        walk->depth_of_c = walk->depth_of_c ?: frame - walk->sp;
        walk->c_start = frame;
        walk->c_span = C_WINDOW - FRAME_BYTES;
        if (!bpf_probe_read_user(walk->bytes + DATA_WINDOW, C_WINDOW, (void*)frame))
            return DATA_WINDOW;
        walk->c_span = 0; /* the stack ends within C_WINDOW bytes, so only this frame is read */
        return bpf_probe_read_user(walk->bytes + DATA_WINDOW, FRAME_BYTES, (void*)frame) ? ~0ULL : DATA_WINDOW;
    }
    if (on_heap) {
        walk->data_start = frame;
        walk->data_span = 0;
        return bpf_probe_read_user(walk->bytes, FRAME_OBJECT_BYTES, (void*)frame) ? ~0ULL : 0;
    }
    /* Starts the read at the beginning of the page, not earlier. A thread's first chunk of frames starts at a page
     * boundary, so the page before may not be mapped, and a read from there would cost a page fault. */
    u64 span = frame & 4095;
    walk->data_span = span;
    walk->data_start = frame - span;
    return bpf_probe_read_user(walk->bytes, span + FRAME_BYTES, (void*)walk->data_start) ? ~0ULL : span;
}

#define STACK_NOT_READ -1
#define NO_PLACE -1
#define WITHOUT_PYTHON -2

struct python_step {
    struct python_walk* walk;
    const struct python_layout* layout;
};

/* Number of innermost frames for which check_of_code() is computed each time a stack is read, which takes 50 to 150 ns
 * per frame. The check is needed because these frames may run code that was generated at run time, at an address that
 * other code used before. */
#define CHECKED_FRAMES 3

INLINE u64 word_at(struct python_walk* walk, u64 address)
{
    walk->word = 0;
    bpf_probe_read_user(&walk->word, sizeof(walk->word), (void*)address);
    return walk->word;
}

/* Returns a value that distinguishes a code object from an earlier one at the same address. From Python 3.12 on, a code
 * object has a unique number. Before 3.12, the value is a hash of three things: the address of the line table, which
 * may also have been reused; the first 8 bytes of this table; and the number of the first line. */
INLINE u64 check_of_code(struct python_walk* walk, const struct python_layout* layout, u64 code)
{
    u64 check = word_at(walk, code + layout->check);
    if (layout->minor < 12) {
        u64 lines = word_at(walk, check + layout->bytes_data);
        check = mixed(mixed(check, lines), word_at(walk, code + layout->first_line));
    }
    return check;
}

/* Records a frame and moves to the caller's frame. */
static long python_step(u64 unused, struct python_step* step)
{
    struct python_walk* walk = step->walk;
    const struct python_layout* layout = step->layout;
    u64 frame = walk->frame;
    if (!frame)
        return 1;
    u64 at = window_with(walk, frame, layout->on_heap);
    PIN(at);
    if (at > DATA_WINDOW + C_WINDOW) {
        walk->stack.outcome = PYTHON_UNREADABLE;
        return 1;
    }
    const u8* bytes = walk->bytes + at;
    walk->frame = *(const u64*)(bytes + layout->previous);
    if (layout->owner != PYTHON_NONE && bytes[layout->owner] >= PYTHON_SHIM) {
        walk->from_c = PYTHON_FROM_C;
        return 0;
    }
    u64 n = walk->stack.depth, place = n < PYTHON_INNER ? n : PYTHON_INNER + (n - PYTHON_INNER) % PYTHON_OUTER;
    PIN(place);
    if (place >= PYTHON_FRAMES)
        return 1;
    struct python_frame* kept = &walk->stack.frame[place];
    u64 code = *(const u64*)(bytes + layout->code) & layout->code_mask;
    kept->code = code | walk->from_c;
    kept->instruction = layout->instruction_bytes == 4 ? *(const u32*)(bytes + layout->instruction)
                                                       : *(const u64*)(bytes + layout->instruction);
    walk->from_c = layout->on_heap || (layout->entry != PYTHON_NONE && bytes[layout->entry]) ? PYTHON_FROM_C : 0;
    walk->stack.depth++;
    kept->check = walk->stack.depth <= CHECKED_FRAMES ? check_of_code(walk, layout, code) : 0;
    walk->stack.hash = mixed(mixed(mixed(walk->stack.hash, code), kept->instruction), kept->check);
    return 0;
}

/* Reads a Python string, or only its end if it is long. Returns the size in bytes of the whole string, or ~0 if it is
 * unreadable. */
INLINE u32 read_python_text(struct python_walk* walk, const struct python_layout* layout, u64 text, char* to, u8* kind)
{
    u64 length = word_at(walk, text + layout->text_length);
    walk->word = 0;
    if (bpf_probe_read_user(&walk->word, 4, (void*)(text + layout->text_state)))
        return ~0U;
    u64 state = walk->word;
    *kind = state >> 2 & 7;
    if (length > 1 << 20)
        return ~0U;
    u64 bytes = length * (state >> 2 & 7);
    u64 from = text + (state >> 6 & 1 ? layout->text_ascii : layout->text_other);
    u64 size = bytes;
    if (size > PYTHON_TEXT_MAX) {
        from += size - PYTHON_TEXT_MAX;
        size = PYTHON_TEXT_MAX;
    }
    PIN(size);
    if (size > PYTHON_TEXT_MAX)
        return ~0U;
    return bpf_probe_read_user(to, size, (void*)from) ? ~0U : bytes;
}

INLINE void describe_python_code(struct python_walk* walk, const struct python_layout* layout,
                                 struct python_code* record)
{
    const struct python_code_key* key = &walk->code;
    u64 code = key->code;
    record->type = RECORD_PYTHON_CODE;
    record->image = key->image;
    record->code = code;
    record->check = key->check;
    record->zero = 0;
    record->first_line = 0;
    bpf_probe_read_user(&record->first_line, 4, (void*)(code + layout->first_line));
    record->file_bytes =
        read_python_text(walk, layout, word_at(walk, code + layout->file), record->file, &record->file_kind);
    record->name_bytes =
        read_python_text(walk, layout, word_at(walk, code + layout->name), record->name, &record->name_kind);
}

/* Reads the line table into the `room` bytes after the record. */
INLINE bool read_table(struct python_walk* walk, const struct python_layout* layout, struct python_code* record,
                       u64 room)
{
    u64 table = walk->table, size = record->table_bytes;
    if (size > room)
        size = room;
    PIN(size);
    return size <= room && !bpf_probe_read_user(record + 1, size, (void*)(table + layout->bytes_data));
}

/* Sends a code object, in a record of one of two sizes. Returns false if the ring buffer is full. */
INLINE bool send_python_code(struct python_walk* walk, const struct python_layout* layout)
{
    walk->table = word_at(walk, walk->code.code + layout->table);
    u64 size = word_at(walk, walk->table + layout->bytes_size);
    struct python_code* record;
    if (size <= PYTHON_TABLE_SMALL)
        record = bpf_ringbuf_reserve(&ring, sizeof(*record) + PYTHON_TABLE_SMALL, 0);
    else
        record = bpf_ringbuf_reserve(&ring, sizeof(*record) + PYTHON_TABLE_MAX, 0);
    if (!record) {
        lose(LOSS_NAME, 1);
        return false;
    }
    record->table_bytes = size;
    bool readable = size <= PYTHON_TABLE_SMALL ? read_table(walk, layout, record, PYTHON_TABLE_SMALL)
                                               : read_table(walk, layout, record, PYTHON_TABLE_MAX);
    if (!readable)
        record->table_bytes = ~0U;
    describe_python_code(walk, layout, record);
    bpf_ringbuf_submit(record, ring_flags(sizeof(*record)));
    return true;
}

/* Sends the code of one frame of a new stack, if the code is also new. */
static long python_code_step(u64 i, struct python_step* step)
{
    struct python_walk* walk = step->walk;
    if (i >= PYTHON_FRAMES || i >= walk->stack.depth)
        return 1;
    struct python_frame* frame = &walk->stack.frame[i];
    struct python_code_key* key = &walk->code;
    key->image = walk->stack.image;
    key->code = frame->code & ~PYTHON_FROM_C;
    key->check = frame->check = check_of_code(walk, step->layout, key->code);
    if (!bpf_map_lookup_elem(&python_codes, key) && send_python_code(walk, step->layout))
        bpf_map_update_elem(&python_codes, key, &walk->is_new, BPF_ANY);
    return 0;
}

/* Starts a walk at the thread's innermost Python frame. */
INLINE void begin_python(struct python_walk* walk, const struct python_layout* layout, struct task_struct* task)
{
    walk->data_start = walk->c_start = ~0ULL;
    walk->data_span = walk->c_span = 0;
    walk->frame = walk->from_c = walk->depth_of_c = 0;
    struct python_stack* stack = &walk->stack;
    stack->hash = stack->depth = stack->too_deep = stack->zero = 0;
    stack->outcome = PYTHON_WALKED;
    __builtin_memset(stack->comm, 0, sizeof(stack->comm));
    u64 thread = THREAD_POINTER(untrusted(task)), state = word_at(walk, thread + layout->slot);
    if (state && word_at(walk, state + layout->thread_id) != THREAD_SELF(thread, layout->self)) {
        stack->outcome = PYTHON_UNREADABLE;
        return;
    }
    u64 frame = state ? word_at(walk, state + layout->frame) : 0;
    if (frame && layout->frame_in_cframe != PYTHON_NONE) {
        if (frame - walk->sp < STACK_FAR_BYTES)
            walk->depth_of_c = frame - walk->sp;
        frame = word_at(walk, frame + layout->frame_in_cframe);
    }
    walk->frame = frame;
    if (!frame) {
        stack->outcome = PYTHON_NO_THREAD;
        read_comm(task, (u64*)stack->comm);
    }
}

/* Finds or claims the slot of a stack in python_stacks, and stores the slot's index in walk->place. Returns false if
 * other stacks occupy all slots that this stack could use. */
INLINE bool find_place(struct python_walk* walk)
{
    for (u32 i = 0; i < 8; i++) {
        u64 hash = walk->stack.hash;
        walk->place = ((u32)(hash >> 32) + i) & python_stacks_mask;
        struct python_stack* place = bpf_map_lookup_elem(&python_stacks, &walk->place);
        if (!place)
            break;
        u64 there = place->hash ?: __sync_val_compare_and_swap(&place->hash, 0, hash);
        walk->is_new = !there;
        if (!there || there == hash)
            return true;
    }
    lose(LOSS_STACK, 1);
    return false;
}

/* Completes a stack and its hash. The hash includes the native caller and depth_of_c, the distance on the stack to the
 * innermost frame made by C code. An interpreter's frame pointers are unreliable. So the front end searches a copy of
 * the stack for the native functions between the caller and this frame. */
INLINE void finish_stack(struct python_walk* walk, const struct python_layout* layout)
{
    struct python_stack* stack = &walk->stack;
    stack->image = image_of(bpf_get_current_task_btf());
    stack->instruction_bytes = layout->instruction_bytes;
    stack->minor = layout->minor;
    stack->first_instruction = layout->first_instruction;
    stack->too_deep = walk->frame && stack->outcome == PYTHON_WALKED;
    u64 hash = mixed(mixed(stack->hash, *(u64*)&stack->image), (u64)stack->outcome << 32 | (u32)stack->native);
    hash = mixed(mixed(hash, walk->caller), walk->depth_of_c);
    stack->hash = mixed(mixed(hash, *(u64*)stack->comm), *(u64*)(stack->comm + 8)) ?: 1;
}

/* Flags in the result of python_stack(). */
#define STACK_IS_NEW 0x10000000 /* the caller must call new_python_stack() */
#define STACK_AGAIN 0x8000000   /* the caller must send another copy of the stack */

/* Returns the id of the stack with its Python frames. The result is negative if the thread runs no Python or the table
 * is full. Callers first pass STACK_NOT_READ as `native`. If the result is then WITHOUT_PYTHON, they may read the
 * native stack, and call again with its id. Must be called with preemption disabled (guard_calls_begin()), because
 * struct python_walk, in which the stack is built, may be per CPU. */
VERIFIED_ONCE int python_stack(u64 sp, u64 caller, int native)
{
    if (!follow_python || !pythons_known)
        return NO_PLACE;
    struct task_struct* task = bpf_get_current_task_btf();
    struct python_walk* walk = python_walk_of(task);
    if (!walk) {
        lose(LOSS_STACK, 1);
        return NO_PLACE;
    }
    walk->sp = sp;
    walk->caller = caller;
    walk->stack.native = native;
    walk->place = task->tgid;
    struct python_step step = {.walk = walk, .layout = bpf_map_lookup_elem(&pythons, &walk->place)};
    if (!step.layout || untrusted(task)->group_leader->start_boottime - step.layout->start_ns >= CLOCK_TICK_NS)
        return NO_PLACE;
    begin_python(walk, step.layout, task);
    if (walk->stack.outcome == PYTHON_NO_THREAD && walk->stack.native == STACK_NOT_READ)
        return WITHOUT_PYTHON;
    bpf_loop(PYTHON_DEPTH_MAX, python_step, &step, 0);
    finish_stack(walk, step.layout);
    if (!find_place(walk))
        return NO_PLACE;
    if (!walk->is_new)
        return walk->place | STACK_OF_PYTHON | (is_copy_due(&walk->known) ? STACK_AGAIN : 0);
    return walk->place | STACK_OF_PYTHON | STACK_IS_NEW;
}

/* Stores a new stack in its slot of python_stacks, and sends the stack's new code objects to the front end. */
VERIFIED_ONCE int new_python_stack(void)
{
    struct task_struct* task = bpf_get_current_task_btf();
    struct python_walk* walk = follow_python ? python_walk_of(task) : 0;
    if (!walk)
        return 0;
    walk->pid = task->tgid;
    struct python_step step = {.walk = walk, .layout = bpf_map_lookup_elem(&pythons, &walk->pid)};
    if (!step.layout)
        return 0;
    bpf_loop(PYTHON_FRAMES, python_code_step, &step, 0);
    bpf_map_update_elem(&python_stacks, &walk->place, &walk->stack, BPF_ANY);
    return 0;
}

/* Returns the id of the stack with its Python frames, as python_stack() does. */
INLINE int read_python_stack(u64 sp, u64 caller, int native, u32 at)
{
    guard_calls_begin();
    int stack = python_stack(sp, caller, native);
    if (stack >= STACK_AGAIN) {
        if (stack & STACK_IS_NEW)
            new_python_stack();
        else
            at |= COPIED_AGAIN;
        stack &= STACK_AGAIN - 1;
        if (native == STACK_NOT_READ)
            send_stack_copy(stack, at);
    }
    guard_calls_end();
    return stack;
}

#endif
