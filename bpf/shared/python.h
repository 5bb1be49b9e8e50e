/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Python stacks (bpf/base/python.bpf.h), and the layout of an interpreter's memory. */
#ifndef GPUSNOOP_PYTHON_H
#define GPUSNOOP_PYTHON_H

#include <linux/types.h>

#include "process.h"

/* The middle of a deeper stack is omitted: the innermost frames are a library's, the outermost ones the program's. */
#define PYTHON_INNER 40
#define PYTHON_OUTER 24
#define PYTHON_FRAMES (PYTHON_INNER + PYTHON_OUTER)
#define PYTHON_DEPTH_MAX 1024 /* deeper frames, the outermost ones, are not read */
#define PYTHON_STACKS 4096    /* powers of two */
#define PYTHON_SAMPLES 1024   /* for tools that sample stacks */
#define PYTHON_CODES 16384

#define STACK_OF_PYTHON 0x400000 /* in a stack's id: it is in the table python_stacks, with the native stack's id */

#define PYTHON_TEXT_MAX 256    /* bytes of a name or path that are sent: the end of a longer one */
#define PYTHON_TABLE_SMALL 704 /* bytes reserved for a line table; enough for most code */
#define PYTHON_TABLE_MAX 61440 /* bytes reserved for a larger table; the rest of it is not sent */

#define PYTHON_NONE 0xff /* a field that this version does not have */

/* Layout of the interpreter's memory in one process (glibc, 64-bit machines). Offsets in bytes. */
struct python_layout {
    __u64 start_ns; /* process start, CLOCK_BOOTTIME, to the clock tick, because its pid may be reused */
    __s32 slot;     /* from the thread pointer to the thread's state */
    __u16 thread_id;
    __u16 frame;          /* in the state: the innermost frame, or a structure that points to it */
    __u8 frame_in_cframe; /* in that structure: the innermost frame; PYTHON_NONE: `frame` is the frame itself */
    /* in a frame */
    __u8 code;
    __u8 previous;
    __u8 instruction;
    __u8 instruction_bytes; /* 4: an index; 8: an address */
    __u8 owner;             /* PYTHON_NONE, or the field that is PYTHON_SHIM or more if C code has made the frame */
    __u8 entry;             /* PYTHON_NONE, or the field that is nonzero if C code has called the frame */
    __u8 on_heap;           /* each frame is a separate object */
    __u64 code_mask;        /* bits of a pointer to code; the other bits are a tag */
    /* in code */
    __u16 check; /* a unique number (3.12 and later), or the line table */
    __u16 file;
    __u16 name;
    __u16 first_line;
    __u16 table;
    __u16 first_instruction;
    /* in a str object, and in a bytes object */
    __u16 text_length;
    __u16 text_state;
    __u16 text_ascii;
    __u16 text_other;
    __u16 bytes_size;
    __u16 bytes_data;
    __u8 minor; /* of the version 3.minor */
    __u8 zero;
    __u16 self; /* from pthread_self() to the thread pointer */
};

#define PYTHON_SHIM 3 /* lowest owner of frames that C code has made for itself (3.12 and later) */

struct python_frame {
    __u64 code; /* its address; PYTHON_FROM_C: C code is between this frame and the frame inside it */
    __u64 instruction;
    __u64 check;
};
#define PYTHON_FROM_C 1ULL

enum python_outcome {
    PYTHON_WALKED,
    PYTHON_NO_THREAD,  /* the thread is unknown to the interpreter, or is running no Python */
    PYTHON_UNREADABLE, /* the interpreter's memory is not as expected */
};

struct python_stack {
    __u64 hash; /* by which it is found; 0: the place is free */
    struct image image;
    __s32 native; /* id of the native stack */
    __u32 depth;  /* number of frames, of which the table has those outlined above */
    __u8 outcome;
    __u8 too_deep;          /* it has more than PYTHON_DEPTH_MAX frames */
    __u8 instruction_bytes; /* from the layout, like the next ones */
    __u8 minor;
    __u16 first_instruction;
    __u16 zero;
    char comm[16]; /* thread name, if it runs no Python */
    struct python_frame frame[PYTHON_FRAMES];
};

/* Code that is first seen in a stack. It is running, so its memory is valid. */
struct python_code {
    __u32 type; /* RECORD_PYTHON_CODE */
    __u32 first_line;
    struct image image;
    __u64 code;
    __u64 check;
    __u32 file_bytes, name_bytes, table_bytes; /* complete sizes; ~0: unreadable */
    __u8 file_kind, name_kind;                 /* bytes per character */
    __u16 zero;
    char file[PYTHON_TEXT_MAX];
    char name[PYTHON_TEXT_MAX];
    /* Followed by its line table, in PYTHON_TABLE_SMALL or PYTHON_TABLE_MAX bytes. */
};

/* Identity of code. */
struct python_code_key {
    struct image image;
    __u64 code;
    __u64 check;
};

#endif
