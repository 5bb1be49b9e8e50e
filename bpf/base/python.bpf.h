/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The Python frames of a thread, from its interpreter's memory. Where that is, the front end has found out
 * (src/python/). A frame is two addresses; what code is called, and its lines, goes to the front end when it is first
 * seen, while it runs and cannot be gone. */
#ifndef GPUSNOOP_PYTHON_BPF_H
#define GPUSNOOP_PYTHON_BPF_H

#include "base/common.bpf.h"
#include "base/process.bpf.h"
#include "base/stack_copy.bpf.h"
#include "shared/python.h"
#include "shared/window.h"

/* Frames lie side by side in memory: read one by one, each would cost 75 ns instead of 12. */
#define FRAME_BYTES 80 /* of a frame that is no object */
#define FRAME_OBJECT_BYTES 112
#define DATA_WINDOW 3840     /* of the interpreter's own stack, callers first */
#define C_WINDOW 2048        /* of the thread's, where C has made frames */
#define FRAME_FIELDS_MAX 264 /* the farthest field of a frame, whatever the layout says */

struct python_walk {
    u64 data_start, data_span; /* the first frame that could be there, and how many bytes further up the last one */
    u64 c_start, c_span;
    u64 frame; /* the next one */
    u64 sp;
    u64 from_c;     /* PYTHON_FROM_C, or 0: of the next one */
    u64 depth_of_c; /* bytes of the stack above the innermost frame that C has made; 0: not known */
    struct python_stack stack;
    u8 bytes[DATA_WINDOW + C_WINDOW + FRAME_FIELDS_MAX];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct python_walk);
} python_walks SEC(".maps");

/* The same where no guard keeps others from what belongs to a CPU. */
struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct python_walk);
} python_walks_of_threads SEC(".maps");

INLINE struct python_walk* python_walk_of(struct task_struct* task)
{
    u32 key = 0;
    return GUARDED ? bpf_map_lookup_elem(&python_walks, &key)
                   : bpf_task_storage_get(&python_walks_of_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, u32); /* process */
    __type(value, struct python_layout);
} pythons SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1); /* set by the front end to PYTHON_STACKS */
    __type(key, u32);
    __type(value, struct python_stack);
} python_stacks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, PYTHON_CODES);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct python_code_key);
    __type(value, u8);
} python_codes SEC(".maps");

#define CLOCK_TICK_NS 10000000 /* USER_HZ is 100 */

const volatile bool follow_python = false;
__u32 pythons_known = 0; /* entries of `pythons`, at least: none costs nothing */

INLINE u64 mixed(u64 hash, u64 word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    return hash ^ hash >> 29;
}

/* The frame's bytes are in the window, at the offset that this returns; beyond all where they cannot be read. */
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
        walk->c_span = 0; /* near the stack's end */
        return bpf_probe_read_user(walk->bytes + DATA_WINDOW, FRAME_BYTES, (void*)frame) ? ~0ULL : DATA_WINDOW;
    }
    if (on_heap) {
        walk->data_start = frame;
        walk->data_span = 0;
        return bpf_probe_read_user(walk->bytes, FRAME_OBJECT_BYTES, (void*)frame) ? ~0ULL : 0;
    }
    u64 span = DATA_WINDOW - FRAME_BYTES;
    walk->data_span = span;
    walk->data_start = frame - span;
    if (!bpf_probe_read_user(walk->bytes, DATA_WINDOW, (void*)walk->data_start))
        return span;
    /* A thread's stack begins with a page, and there may be nothing before that. */
    span = frame & 4095;
    if (span > DATA_WINDOW - FRAME_BYTES)
        span = 0;
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

/* Of the innermost frames each time, as that costs 50 to 150 ns: code that is made at run time is there. */
#define CHECKED 3

/* What tells code from other code that was at its address before. Until 3.11 it has no number: pointers come again with
 * the address, but its first line and the begin of its table of lines are what they are. */
INLINE u64 check_of_code(const struct python_layout* layout, u64 code)
{
    u64 check = read_word(code + layout->check);
    if (layout->minor < 12)
        check = mixed(mixed(check, read_word(check + layout->bytes_data)), read_word(code + layout->first_line));
    return check;
}

/* One frame; the caller's comes next. */
static long python_step(u32 unused, struct python_step* step)
{
    struct python_walk* walk = step->walk;
    const struct python_layout* layout = step->layout;
    u64 frame = walk->frame;
    if (!frame)
        return 1;
    u64 at = window_with(walk, frame, layout->on_heap);
    barrier_var(at);
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
    u64 code = *(const u64*)(bytes + layout->code) & layout->code_mask;
    u64 instruction = layout->instruction_bytes == 4 ? *(const u32*)(bytes + layout->instruction)
                                                     : *(const u64*)(bytes + layout->instruction);
    u32 n = walk->stack.depth;
    u64 check = 0;
    if (n < CHECKED)
        check = check_of_code(layout, code);
    walk->stack.hash = mixed(mixed(mixed(walk->stack.hash, code), instruction), check);
    u32 place = n < PYTHON_INNER ? n : PYTHON_INNER + (n - PYTHON_INNER) % PYTHON_OUTER;
    barrier_var(place);
    if (place >= PYTHON_FRAMES)
        return 1;
    walk->stack.frame[place].code = code | walk->from_c;
    walk->stack.frame[place].instruction = instruction;
    walk->stack.frame[place].check = check;
    walk->stack.depth = n + 1;
    walk->from_c = layout->on_heap || (layout->entry != PYTHON_NONE && bytes[layout->entry]) ? PYTHON_FROM_C : 0;
    return 0;
}

/* A text of Python, its end where it is long: how many bytes it has, ~0 where it cannot be read. */
INLINE u32 read_python_text(const struct python_layout* layout, u64 text, char* to, u8* kind)
{
    u64 length = 0;
    u32 state = 0;
    if (bpf_probe_read_user(&length, 8, (void*)(text + layout->text_length)) ||
        bpf_probe_read_user(&state, 4, (void*)(text + layout->text_state)))
        return ~0U;
    *kind = state >> 2 & 7;
    u64 bytes = length * *kind;
    u64 from = text + (state >> 6 & 1 ? layout->text_ascii : layout->text_other);
    if (bytes > 1 << 20)
        return ~0U;
    u64 size = bytes;
    if (size > PYTHON_TEXT_MAX) {
        from += size - PYTHON_TEXT_MAX;
        size = PYTHON_TEXT_MAX;
    }
    barrier_var(size);
    if (size > PYTHON_TEXT_MAX)
        return ~0U;
    return bpf_probe_read_user(to, size, (void*)from) ? ~0U : bytes;
}

INLINE void describe_python_code(const struct python_layout* layout, const struct python_code_key* key,
                                 struct python_code* record)
{
    u64 code = key->code;
    record->type = RECORD_PYTHON_CODE;
    record->image = key->image;
    record->code = code;
    record->check = key->check;
    record->zero = 0;
    record->first_line = 0;
    bpf_probe_read_user(&record->first_line, 4, (void*)(code + layout->first_line));
    record->file_bytes = read_python_text(layout, read_word(code + layout->file), record->file, &record->file_kind);
    record->name_bytes = read_python_text(layout, read_word(code + layout->name), record->name, &record->name_kind);
}

/* `room` is a constant: the record's size is known to the verifier. */
INLINE bool send_python_code_in(const struct python_layout* layout, const struct python_code_key* key, u64 table,
                                u64 size, u64 room)
{
    struct python_code* record = bpf_ringbuf_reserve(&ring, sizeof(*record) + room, 0);
    if (!record) {
        lose(LOSS_NAME, 1);
        return false;
    }
    describe_python_code(layout, key, record);
    record->table_bytes = size;
    if (size > room)
        size = room;
    barrier_var(size);
    if (size > room || bpf_probe_read_user((void*)(record + 1), size, (void*)(table + layout->bytes_data)))
        record->table_bytes = ~0U;
    bpf_ringbuf_submit(record, ring_flags(sizeof(*record) + room));
    return true;
}

/* True where it has been sent. */
INLINE bool send_python_code(const struct python_layout* layout, const struct python_code_key* key)
{
    u64 table = read_word(key->code + layout->table), size = read_word(table + layout->bytes_size);
    return size <= PYTHON_TABLE_FEW ? send_python_code_in(layout, key, table, size, PYTHON_TABLE_FEW)
                                    : send_python_code_in(layout, key, table, size, PYTHON_TABLE_MAX);
}

/* A frame of a stack that is new: whether its code is, too. */
static long python_code_step(u32 i, struct python_step* step)
{
    struct python_walk* walk = step->walk;
    if (i >= PYTHON_FRAMES || i >= walk->stack.depth)
        return 1;
    struct python_frame* frame = &walk->stack.frame[i];
    struct python_code_key key = {.image = walk->stack.image, .code = frame->code & ~PYTHON_FROM_C};
    key.check = frame->check = check_of_code(step->layout, key.code);
    u8 yes = 1;
    if (!bpf_map_lookup_elem(&python_codes, &key) && send_python_code(step->layout, &key))
        bpf_map_update_elem(&python_codes, &key, &yes, BPF_ANY);
    return 0;
}

/* Where the thread is in Python. */
INLINE void begin_python(struct python_walk* walk, const struct python_layout* layout, struct task_struct* task, u64 sp)
{
    walk->data_start = walk->c_start = ~0ULL;
    walk->data_span = walk->c_span = 0;
    walk->frame = walk->from_c = walk->depth_of_c = 0;
    walk->sp = sp;
    struct python_stack* stack = &walk->stack;
    stack->hash = stack->depth = stack->endless = stack->zero = 0;
    stack->outcome = PYTHON_WALKED;
    __builtin_memset(stack->comm, 0, sizeof(stack->comm));
    u64 thread = untrusted(task)->thread.fsbase, state = read_word(thread + layout->slot);
    if (state && read_word(state + layout->thread_id) != thread) {
        stack->outcome = PYTHON_UNREADABLE;
        return;
    }
    u64 frame = state ? read_word(state + layout->frame) : 0;
    if (frame && layout->frame_behind != PYTHON_NONE) {
        if (frame - sp < STACK_FAR_BYTES)
            walk->depth_of_c = frame - sp;
        frame = read_word(frame + layout->frame_behind);
    }
    walk->frame = frame;
    if (!frame) {
        stack->outcome = PYTHON_NO_THREAD;
        read_comm(task, (u64*)stack->comm);
    }
}

/* The place of the stack in the table, which it takes where it is new; negative where others have all that it could
 * have. */
INLINE int place_of_python_stack(struct python_walk* walk, bool* is_new)
{
    struct python_stack* stack = &walk->stack;
    u64 hash = stack->hash;
    for (u32 i = 0; i < 16; i++) {
        u32 key = ((u32)(hash >> 32) + i) & (PYTHON_STACKS - 1);
        struct python_stack* place = bpf_map_lookup_elem(&python_stacks, &key);
        if (!place)
            break;
        u64 there = place->hash;
        if (!there) {
            there = __sync_val_compare_and_swap(&place->hash, 0, hash);
            if (!there) {
                *is_new = true;
                return key;
            }
        }
        if (there == hash)
            return key;
    }
    lose(LOSS_STACK, 1);
    return NO_PLACE;
}

/* Under the guard: the walk may be the CPU's. What native code there is between the call and Python, the front end
 * finds in a copy of the stack. It is not part of what makes stacks the same, for frame pointers lead astray in an
 * interpreter: who calls is, and how much of the stack lies between. */
INLINE int walk_python(struct task_struct* task, const struct python_layout* layout, u64 sp, u64 caller, int native)
{
    struct python_walk* walk = python_walk_of(task);
    if (!walk) {
        lose(LOSS_STACK, 1);
        return NO_PLACE;
    }
    struct python_step step = {.walk = walk, .layout = layout};
    struct python_stack* stack = &walk->stack;
    begin_python(walk, layout, task, sp);
    if (stack->outcome == PYTHON_NO_THREAD && native == STACK_NOT_READ)
        return WITHOUT_PYTHON;
    bpf_loop(PYTHON_DEPTH_MAX, python_step, &step, 0);
    stack->image = image_of(task);
    stack->native = native;
    stack->instruction_bytes = layout->instruction_bytes;
    stack->minor = layout->minor;
    stack->first_instruction = layout->first_instruction;
    stack->endless = walk->frame && stack->outcome == PYTHON_WALKED;
    u64 hash = mixed(mixed(stack->hash, *(u64*)&stack->image), (u64)stack->outcome << 32 | (u32)native);
    hash = mixed(mixed(hash, caller), walk->depth_of_c);
    stack->hash = mixed(mixed(hash, *(u64*)stack->comm), *(u64*)(stack->comm + 8)) ?: 1;
    bool is_new = false;
    int place = place_of_python_stack(walk, &is_new);
    if (is_new) {
        u32 key = place;
        bpf_loop(PYTHON_FRAMES, python_code_step, &step, 0);
        bpf_map_update_elem(&python_stacks, &key, stack, BPF_ANY);
        if (native == STACK_NOT_READ)
            send_stack_copy(task, stack->image, place | STACK_OF_PYTHON);
    }
    return place;
}

/* The id of the stack with Python in it. Negative where the thread runs none, or no place is left. native: the id of
 * the stack, where it runs none, and that is to be said of it. Verified once. */
__attribute__((noinline)) int python_stack(u64 sp, u64 caller, int native)
{
    if (!follow_python || !pythons_known)
        return NO_PLACE;
    struct task_struct* task = bpf_get_current_task_btf();
    u32 pid = task->tgid;
    const struct python_layout* layout = bpf_map_lookup_elem(&pythons, &pid);
    if (!layout || untrusted(task)->group_leader->start_boottime - layout->start_ns >= CLOCK_TICK_NS)
        return NO_PLACE;
    guard_begin();
    int place = walk_python(task, layout, sp, caller, native);
    guard_end();
    return place < 0 ? place : place | STACK_OF_PYTHON;
}

#endif
