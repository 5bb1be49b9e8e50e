/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Calls into GPU drivers: counting and hooks. */
#ifndef GPUSNOOP_DRIVER_BPF_H
#define GPUSNOOP_DRIVER_BPF_H

#include "base/call.bpf.h"
#include "base/process.bpf.h"
#include "shared/ioctl.h"
#include "shared/probe.h"

/* Records driver calls at entry and counts them at return. This code is the same for all kinds of hooks. */

const volatile bool keep_recent = false; /* keep the last calls of each process */

#define REQUEST_SIZE_MAX 0x3fff

/* Device number (as in i_rdev) -> enum driver_node, possibly with NODE_BY_FUNCTION. The front end fills this map at
 * start, and again when a driver is loaded. */
PREALLOCATED_HASH_MAP(nodes, 1024, u32, u8);

PREALLOCATED_HASH_MAP(command_layouts, 1024, struct command_key, struct command_layout);

PREALLOCATED_HASH_MAP(size_layouts, 256, struct size_key, struct size_layout);

/* Calls in flight, by thread id. They are not in task storage, because the front end iterates over them to report calls
 * that do not return. */
HASH_MAP(in_flight, 16384, u32, struct driver_call);

LRU_HASH_MAP(recent, 1024, u32, struct recent_calls);

/* Zeros for a new entry. Global, because the stack has no room for them. */
struct recent_calls no_recent_calls = {};

INLINE u8 node_of(u32 device)
{
    u8* node = bpf_map_lookup_elem(&nodes, &device);
    if (!node) {
        u32 any = device | MINOR_ANY;
        node = bpf_map_lookup_elem(&nodes, &any);
    }
    return node ? *node : NODE_NONE;
}

/* An ioctl command and its entry in command_layouts. If there is no entry for the command with this struct size, the
 * command's number is looked up without the size, because larger structs begin with the same fields. */
struct known_command {
    struct command_key key;
    struct command_layout* layout; /* NULL if unknown */
};

INLINE struct known_command known_command(const struct call_key* key)
{
    u32 request = (u32)key->subject;
    struct known_command known = {.key = {.space = space_of_node(key->driver.node), .request = request}};
    known.layout = bpf_map_lookup_elem(&command_layouts, &known.key);
    if (known.layout || known.key.space != SPACE_NVIDIA || (request >> 8 & 0xff) != 'F')
        return known;
    known.key.request = request & 0xff;
    known.layout = bpf_map_lookup_elem(&command_layouts, &known.key);
    if (known.layout && (request >> 16 & REQUEST_SIZE_MAX) < known.layout->size)
        known.layout = 0;
    return known;
}

INLINE bool read_u32(u64 address, u32* value)
{
    return bpf_probe_read_user(value, sizeof(*value), (void*)address) == 0;
}

#define XFER_REQUEST 0xc01046d3u /* NV_ESC_IOCTL_XFER_CMD: wraps commands whose size does not fit in an ioctl code */

struct xfer {
    u32 command;
    u32 size;
    u64 argument;
};

/* Reads the command and its subject from the caller's struct. If the struct is in a page that was never accessed, it is
 * unreadable until the driver accesses it. So end_driver_call() tries again. */
INLINE void read_command(struct driver_call* call)
{
    struct call_key* key = &call->key;
    u32 request = (u32)key->subject;
    struct xfer xfer;
    if (request == XFER_REQUEST && space_of_node(key->driver.node) == SPACE_NVIDIA &&
        !bpf_probe_read_user(&xfer, sizeof(xfer), (void*)call->argument)) {
        u32 size = xfer.size > REQUEST_SIZE_MAX ? 0 : xfer.size;
        request = 0xc0004600u | size << 16 | (xfer.command & 0xff);
        call->argument = xfer.argument;
    }
    key->subject = request;
    struct command_layout* layout = known_command(key).layout;
    u32 subject = 0;
    if (!layout || layout->subject == OFFSET_NONE)
        return;
    if (read_u32(call->argument + layout->subject, &subject)) {
        key->subject |= (u64)subject << 32;
        key->flags |= CALL_SUBJECT;
    }
}

/* `request` and `argument` are used only for ioctls. Returns false if the call is not traced. */
INLINE bool begin_driver_call(void* ctx, u8 node, u32 minor, u8 entry, u32 request, u64 argument)
{
    struct task_struct* task = bpf_get_current_task_btf();
    if (node == NODE_NONE || !is_traced(task))
        return false;
    struct driver_call call = {};
    struct call_key* key = &call.key;
    key->image = image_of(task);
    key->kind = entry;
    key->layer = LAYER_KERNEL;
    key->duration = BUCKET_NONE;
    key->device = DEVICE_UNKNOWN;
    key->stack = -1;
    key->driver.node = node;
    key->driver.minor = minor;
    if (per_thread)
        key->tid = task->pid;
    if (per_cgroup)
        key->cgroups = cgroups_of(task);
    if (per_stack)
        keep_stack(ctx, key);
    call.argument = argument;
    call.thread_start_ns = task->start_boottime;
    key->subject = request;
    if (entry == ENTRY_IOCTL)
        read_command(&call);
    call.since_ns = bpf_ktime_get_ns();
    u32 tid = task->pid;
    /* If the thread still has an entry, the return of its last call was missed. A kretprobe tracks a limited number of
     * calls at a time (10, or two per CPU), and misses the returns of further calls. */
    if (bpf_map_lookup_elem(&in_flight, &tid))
        lose(LOSS_RETURN, 1);
    if (bpf_map_update_elem(&in_flight, &tid, &call, BPF_ANY))
        lose(LOSS_START, 1);
    return true;
}

INLINE void read_result(const struct driver_call* call, struct call_key* key, s64 returned)
{
    key->result = 0;
    if (returned < 0) {
        key->result = (s32)returned;
        key->driver.outcome = OUTCOME_ERRNO;
        return;
    }
    u32 space = space_of_node(key->driver.node);
    bool has_status = key->kind == ENTRY_IOCTL && (space == SPACE_NVIDIA || space == SPACE_UVM);
    key->driver.outcome = has_status ? OUTCOME_UNKNOWN : OUTCOME_OK;
    struct command_layout* layout = has_status ? known_command(key).layout : 0;
    if (!layout || layout->status == OFFSET_NONE)
        return;
    u32 status = 0;
    if (!read_u32(call->argument + layout->status, &status))
        return lose(LOSS_ARGUMENTS, 1);
    key->result = (s32)status;
    key->driver.outcome = OUTCOME_STATUS;
}

/* Reads the size field of the command's struct. Returns false if the struct has no size field, or is unreadable. */
INLINE bool read_size(const struct driver_call* call, struct call_key* key, struct memory_call* memory)
{
    struct known_command known = known_command(key);
    struct size_key where = {
        .command = known.key,
        .subject = key->flags & CALL_SUBJECT ? (u32)(key->subject >> 32) : 0,
    };
    struct size_layout* size = bpf_map_lookup_elem(&size_layouts, &where);
    if (!size)
        return false;
    u64 base = call->argument;
    if (size->in_parameters) {
        base = known.layout ? read_word(call->argument + known.layout->parameters) : 0;
    }
    if (!base || bpf_probe_read_user(&memory->bytes, sizeof(memory->bytes), (void*)(base + size->offset))) {
        lose(LOSS_ARGUMENTS, 1);
        return false;
    }
    memory->bytes += size->is_limit;
    memory->sized = 1;
    if (size->is_virtual)
        key->flags |= CALL_VIRTUAL;
    return true;
}

INLINE void keep_recent_call(const struct call_key* key, u64 now, u64 duration_ns)
{
    u32 pid = key->image.pid;
    struct recent_calls* calls = bpf_map_lookup_elem(&recent, &pid);
    if (!calls) {
        bpf_map_update_elem(&recent, &pid, &no_recent_calls, BPF_NOEXIST);
        calls = bpf_map_lookup_elem(&recent, &pid);
        if (!calls)
            return;
    }
    if (calls->image.pid != pid || calls->image.serial != key->image.serial) {
        /* The entry is new, or its pid has been reused. */
        calls->image = key->image;
        calls->count = 0;
    }
    u64 place = __sync_fetch_and_add(&calls->count, 1);
    calls->calls[place % RECENT_CALLS] = (struct recent_call){
        .time_ns = now,
        .duration_ns = duration_ns,
        .subject = key->subject,
        .result = key->result,
        .driver = key->driver,
        .kind = key->kind,
        .flags = key->flags,
    };
}

INLINE void end_driver_call(s64 returned)
{
    struct task_struct* task = bpf_get_current_task_btf();
    u32 tid = task->pid;
    struct driver_call* open = bpf_map_lookup_elem(&in_flight, &tid);
    if (!open)
        return;
    struct driver_call begun = *open;
    bpf_map_delete_elem(&in_flight, &tid);
    u64 now = bpf_ktime_get_ns();
    u64 duration = now > begun.since_ns ? now - begun.since_ns : 0;
    if (begun.key.kind == ENTRY_IOCTL && !(begun.key.flags & CALL_SUBJECT))
        read_command(&begun);
    struct call call = {.key = begun.key};
    struct call_key* key = &call.key;
    read_result(&begun, key, returned);
    if (keep_recent)
        keep_recent_call(key, now, duration);
    if (duration < least_ns || (only_failed && !is_failure(key->driver.outcome, key->result)))
        return;
    key->duration = duration_bucket(duration);
    bool sized = key->kind == ENTRY_IOCTL && read_size(&begun, key, &call.memory);
    struct call_stats* stats = count_call(task, &call, 1, begun.since_ns, duration);
    if (stats && sized)
        add(&stats->v[MEMORY_BYTES], call.memory.bytes);
}

/* Hooks on the drivers' own functions, or on the system calls that call them. */

/* --- the drivers' functions -------------------------------------------------------------------------------------- */

/* The functions are ioctl(file, request, argument), mmap(file, area), open(inode, file) and release(inode, file). */
INLINE void begin_function(void* ctx, u8 entry, u64 first, u64 request, u64 argument)
{
    struct inode* inode = (struct inode*)first;
    if (entry == ENTRY_IOCTL || entry == ENTRY_MMAP)
        inode = READ((struct file*)first, f_inode);
    u32 device = READ(inode, i_rdev);
    begin_driver_call(ctx, node_of(device) & ~NODE_BY_FUNCTION, device & MINOR_ANY, entry, (u32)request, argument);
}

/* The probe's cookie is the enum driver_entry of the function. */
SEC("kprobe")
int function_entry(struct pt_regs* ctx)
{
    guard_begin();
    u8 entry = bpf_get_attach_cookie(ctx);
    begin_function(ctx, entry, PT_REGS_PARM1(ctx), entry == ENTRY_IOCTL ? PT_REGS_PARM2(ctx) : 0, PT_REGS_PARM3(ctx));
    guard_end();
    return 0;
}

SEC("kretprobe")
int function_return(struct pt_regs* ctx)
{
    guard_begin();
    /* All of these functions except ioctl return an int, so the upper half of their result register is undefined. */
    u8 entry = bpf_get_attach_cookie(ctx);
    end_driver_call(entry == ENTRY_IOCTL ? (s64)PT_REGS_RC(ctx) : (s32)PT_REGS_RC(ctx));
    guard_end();
    return 0;
}

/* An fentry or fexit program is verified for one kernel function, so each function needs its own program. */
#define FUNCTION(NAME, ENTRY, SECOND, THIRD, RETURNED)                                                                 \
    SEC("fentry")                                                                                                      \
    int NAME##_entry(u64* ctx)                                                                                         \
    {                                                                                                                  \
        guard_begin();                                                                                                 \
        begin_function(ctx, ENTRY, ctx[0], SECOND, THIRD);                                                             \
        guard_end();                                                                                                   \
        return 0;                                                                                                      \
    }                                                                                                                  \
    SEC("fexit")                                                                                                       \
    int NAME##_return(u64* ctx)                                                                                        \
    {                                                                                                                  \
        guard_begin();                                                                                                 \
        end_driver_call((s64)RETURNED);                                                                                \
        guard_end();                                                                                                   \
        return 0;                                                                                                      \
    }

#define DRIVER(NAME)                                                                                                   \
    FUNCTION(NAME##_ioctl, ENTRY_IOCTL, ctx[1], ctx[2], ctx[3])                                                        \
    FUNCTION(NAME##_open, ENTRY_OPEN, 0, 0, (s32)ctx[2])                                                               \
    FUNCTION(NAME##_close, ENTRY_CLOSE, 0, 0, (s32)ctx[2])                                                             \
    FUNCTION(NAME##_mmap, ENTRY_MMAP, 0, 0, (s32)ctx[2])

DRIVER(nvidia)
DRIVER(modeset)
DRIVER(caps)
DRIVER(uvm)
DRIVER(uvm_tools)
DRIVER(kfd)
DRIVER(amdgpu)

/* --- system calls, if the functions cannot be hooked ----------------------------------------------------------- */

/* Returns the device number of a descriptor of the calling process, or 0 if the descriptor does not refer to a
 * character device. */
INLINE u32 device_of(u64 descriptor)
{
    struct inode* inode = inode_of_descriptor(bpf_get_current_task_btf(), descriptor);
    bool is_character_device = inode && (READ(inode, i_mode) & MODE_TYPE) == MODE_CHARACTER_DEVICE;
    return is_character_device ? READ(inode, i_rdev) : 0;
}

INLINE bool begin_system_call(void* ctx, u64 descriptor, u8 entry, u32 request, u64 argument)
{
    u32 device = device_of(descriptor);
    u8 node = device ? node_of(device) : NODE_NONE;
    return !(node & NODE_BY_FUNCTION) && begin_driver_call(ctx, node, device & MINOR_ANY, entry, request, argument);
}

#define SYSTEM_CALL(NAME, BEGIN)                                                                                       \
    SEC("tracepoint")                                                                                                  \
    int NAME##_enter(struct trace_event_raw_sys_enter* ctx)                                                            \
    {                                                                                                                  \
        guard_begin();                                                                                                 \
        BEGIN;                                                                                                         \
        guard_end();                                                                                                   \
        return 0;                                                                                                      \
    }

SYSTEM_CALL(ioctl, begin_system_call(ctx, (u32)ctx->args[0], ENTRY_IOCTL, (u32)ctx->args[1], ctx->args[2]))
SYSTEM_CALL(close, begin_system_call(ctx, (u32)ctx->args[0], ENTRY_CLOSE, 0, 0))
SYSTEM_CALL(mmap, begin_system_call(ctx, (u32)ctx->args[4], ENTRY_MMAP, 0, 0))

/* Handles the return of ioctl, close and mmap. */
SEC("tracepoint")
int call_exit(struct trace_event_raw_sys_exit* ctx)
{
    guard_begin();
    end_driver_call(ctx->ret);
    guard_end();
    return 0;
}

/* An open of a device is counted when the system call returns, because the device is unknown until then. So failed
 * opens are not counted, and opens have no duration. */
SEC("tracepoint")
int open_exit(struct trace_event_raw_sys_exit* ctx)
{
    guard_begin();
    if (ctx->ret >= 0 && begin_system_call(ctx, (u64)ctx->ret, ENTRY_OPEN, 0, 0))
        end_driver_call(0);
    guard_end();
    return 0;
}

/* --- errors of GPUs ---------------------------------------------------------------------------------------------- */

/* Offsets of fields in the record of the tracepoint nvidia:nvidia_dev_xid, taken from its format file. */
const volatile __u32 xid_device_offset = 0;
const volatile __u32 xid_number_offset = 0;
const volatile __u32 xid_text_offset = 0;

/* Reads a string from a tracepoint's record. The lower half of the 32-bit word at `at` is the string's offset. */
INLINE void read_record_text(void* ctx, u32 at, char* text, u32 size)
{
    u32 location = kernel_word(ctx + at);
    kernel_text(text, size, ctx + (location & 0xffff));
}

INLINE struct xid_record* begin_xid(u32 number)
{
    struct xid_record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        lose(LOSS_EVENT, 1);
        return 0;
    }
    __builtin_memset(record, 0, sizeof(*record));
    record->type = RECORD_XID;
    record->xid = number;
    record->time_ns = bpf_ktime_get_ns();
    return record;
}

SEC("tracepoint")
int xid_event(void* ctx)
{
    guard_begin();
    struct xid_record* record = begin_xid(kernel_word(ctx + xid_number_offset));
    if (record) {
        read_record_text(ctx, xid_device_offset, record->device, sizeof(record->device));
        read_record_text(ctx, xid_text_offset, record->text, sizeof(record->text));
        bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
    }
    guard_end();
    return 0;
}

/* nv_report_error(struct pci_dev*, u32 number, const char* format, va_list) */
SEC("kprobe")
int xid_report(struct pt_regs* ctx)
{
    guard_begin();
    struct xid_record* record = begin_xid((u32)PT_REGS_PARM2(ctx));
    if (record) {
        const char* name = READ((struct pci_dev*)PT_REGS_PARM1(ctx), dev.kobj.name);
        kernel_text(record->device, sizeof(record->device), name);
        bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
    }
    guard_end();
    return 0;
}

#endif
