/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Python stacks (bpf/base/python.bpf.h), and the layout of an interpreter's memory. */
#ifndef GPUSNOOP_PYTHON_H
#define GPUSNOOP_PYTHON_H

#include <linux/types.h>

#include "process.h"

/* Numbers of innermost and outermost frames that are kept of each stack. The middle of a deeper stack is omitted,
 * because the innermost frames show the library, and the outermost ones the program. */
#define PYTHON_INNER 40
#define PYTHON_OUTER 24
#define PYTHON_FRAMES (PYTHON_INNER + PYTHON_OUTER)
#define PYTHON_DEPTH_MAX 1024 /* at most this many frames are read, innermost first */
#define PYTHON_STACKS 4096    /* number of slots in python_stacks; this and the next two numbers are powers of two */
#define PYTHON_SAMPLES 1024   /* the same for tools that only sample stacks */
#define PYTHON_CODES 16384

/* Flag in a stack's id: the other bits are an index in python_stacks, whose entry has the id of the native stack. */
#define STACK_OF_PYTHON 0x400000

#define PYTHON_TEXT_MAX 256    /* maximum size of a name or path; only the end of a longer one is sent */
#define PYTHON_TABLE_SMALL 704 /* bytes reserved for a line table; enough for most code */
#define PYTHON_TABLE_MAX 61440 /* bytes reserved for a larger table; a table that is even larger is truncated */

#define PYTHON_NONE 0xff /* offset of a field that the interpreter's version does not have */

/* Layout of the interpreter's memory in one process (glibc, 64-bit machines). Offsets are in bytes. */
struct python_layout {
    __u64 start_ns; /* process start, CLOCK_BOOTTIME, rounded to clock ticks; needed because pids are reused */
    __s32 slot;     /* offset from the thread pointer to the variable that points to the Python thread state */
    __u16 thread_id;
    __u16 frame;          /* in the thread's state: offset of the pointer to the innermost frame, or to the cframe */
    __u8 frame_in_cframe; /* in the cframe: offset of the pointer to the frame; PYTHON_NONE if there is no cframe */
    /* offsets in a frame */
    __u8 code;
    __u8 previous;
    __u8 instruction;
    __u8 instruction_bytes; /* size of the field `instruction`: 4 for an index, 8 for an address */
    __u8 owner;      /* field that is at least PYTHON_SHIM if the frame belongs to the interpreter's C code; may be
                        PYTHON_NONE */
    __u8 entry;      /* field whose value is nonzero if C code called the Python function; may be PYTHON_NONE */
    __u8 on_heap;    /* flag, not an offset: nonzero if each frame is a separate object */
    __u64 code_mask; /* bits of the field `code` that are the pointer; the other bits are a tag */
    /* offsets in a code object */
    __u16 check; /* field that identifies the code: from Python 3.12 on a unique number, before that the line table */
    __u16 file;
    __u16 name;
    __u16 first_line;
    __u16 table;
    __u16 first_instruction;
    /* offsets in a str object (text_...) and in a bytes object (bytes_...) */
    __u16 text_length;
    __u16 text_state;
    __u16 text_ascii;
    __u16 text_other;
    __u16 bytes_size;
    __u16 bytes_data;
    __u8 minor; /* Python's version is 3.minor */
    __u8 zero;
    __u16 self; /* distance from pthread_self() to the thread pointer */
};

/* From Python 3.12 on, frames whose `owner` is at least this belong to the interpreter's C code, not to a Python
 * function. */
#define PYTHON_SHIM 3

struct python_frame {
    __u64 code; /* code object; has the flag PYTHON_FROM_C if C code is between this frame and its callee */
    __u64 instruction;
    __u64 check;
};
#define PYTHON_FROM_C 1ULL

enum python_outcome {
    PYTHON_WALKED,
    PYTHON_NO_THREAD,  /* the interpreter does not know the thread, or the thread runs no Python */
    PYTHON_UNREADABLE, /* the interpreter's memory does not have the expected layout */
};

struct python_stack {
    __u64 hash; /* hash that identifies the stack; 0: the slot is free */
    struct image image;
    __s32 native; /* id of the native stack; negative: not read */
    __u32 depth;  /* number of frames that were read; if higher than PYTHON_FRAMES, `frame` omits the middle ones */
    __u8 outcome;
    __u8 too_deep;          /* nonzero if the stack has more than PYTHON_DEPTH_MAX frames */
    __u8 instruction_bytes; /* copied from the layout, like `minor` and `first_instruction` */
    __u8 minor;
    __u16 first_instruction;
    __u16 zero;
    char comm[16]; /* name of the thread, if it runs no Python */
    struct python_frame frame[PYTHON_FRAMES];
};

/* A code object, sent when it is first seen in a stack. The code is running at that time, so its memory is valid. */
struct python_code {
    __u32 type; /* RECORD_PYTHON_CODE */
    __u32 first_line;
    struct image image;
    __u64 code;
    __u64 check;
    __u32 file_bytes, name_bytes, table_bytes; /* sizes before truncation; ~0: unreadable */
    __u8 file_kind, name_kind;                 /* bytes per character of `file` and `name` */
    __u16 zero;
    char file[PYTHON_TEXT_MAX];
    char name[PYTHON_TEXT_MAX];
    /* The line table follows, in PYTHON_TABLE_SMALL or PYTHON_TABLE_MAX bytes. */
};

/* Identifies a code object. */
struct python_code_key {
    struct image image;
    __u64 code;
    __u64 check;
};

#endif
