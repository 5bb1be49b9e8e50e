/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Stacks of Python, as bpf/base/python.bpf.h takes them, and where an interpreter keeps what they are made of. */
#ifndef GPUSNOOP_PYTHON_H
#define GPUSNOOP_PYTHON_H

#include <linux/types.h>

#include "process.h"

/* Of a deeper stack, the middle is left out: the innermost frames are a library's, the outermost ones the program's. */
#define PYTHON_INNER 40
#define PYTHON_OUTER 24
#define PYTHON_FRAMES (PYTHON_INNER + PYTHON_OUTER)
#define PYTHON_DEPTH_MAX 1024 /* nobody follows more: the outermost ones are missing then */
#define PYTHON_STACKS 4096    /* powers of two */
#define PYTHON_SAMPLES 1024   /* of a tool that takes stacks of some calls only */
#define PYTHON_CODES 16384

#define STACK_OF_PYTHON 0x400000 /* in a stack's id: it is in the table of these, which has the native one's id */

#define PYTHON_TEXT_MAX 256    /* bytes of a name or a path that are sent; of longer ones the end */
#define PYTHON_TABLE_SMALL 704 /* bytes of a line table that are sent, of most code */
#define PYTHON_TABLE_MAX 61440 /* and of any; lines behind that are not known */

#define PYTHON_NONE 0xff /* of a field that this version has not */

/* Where the interpreter of one process keeps what (glibc, machines of 64 bits). Offsets in bytes. */
struct python_layout {
    __u64 start_ns; /* of the process, CLOCK_BOOTTIME, to the clock tick: another one may have its number later */
    __s32 slot;     /* from the thread pointer to the thread's state */
    __u16 thread_id;
    __u16 frame;          /* in the state: its innermost frame, or what points to that */
    __u8 frame_in_cframe; /* in what that is; PYTHON_NONE: it is the frame itself */
    /* in a frame */
    __u8 code;
    __u8 previous;
    __u8 instruction;
    __u8 instruction_bytes; /* 4: an index; 8: an address */
    __u8 owner;             /* PYTHON_NONE, or where it says whether C has made the frame (PYTHON_SHIM) */
    __u8 entry;             /* PYTHON_NONE, or where it says whether C has called it */
    __u8 on_heap;           /* each frame is an object of its own */
    __u64 code_mask;        /* of a pointer to code: the others are a tag */
    /* in code */
    __u16 check; /* a number that no other code has (3.12 and later), or the table */
    __u16 file;
    __u16 name;
    __u16 first_line;
    __u16 table;
    __u16 first_instruction;
    /* in a text, and in bytes */
    __u16 text_length;
    __u16 text_state;
    __u16 text_ascii;
    __u16 text_other;
    __u16 bytes_size;
    __u16 bytes_data;
    __u8 minor; /* of the version, 3.minor */
    __u8 zero;
    __u16 self; /* of the thread: from pthread_self() to the thread pointer */
};

#define PYTHON_SHIM 3 /* least owner of frames that C has made for itself (3.12 and later) */

struct python_frame {
    __u64 code; /* its address; PYTHON_FROM_C: there is C between it and the frame inside it */
    __u64 instruction;
    __u64 check;
};
#define PYTHON_FROM_C 1ULL

enum python_outcome {
    PYTHON_WALKED,
    PYTHON_NO_THREAD,  /* the interpreter does not know the thread, or it runs no Python at the moment */
    PYTHON_UNREADABLE, /* its memory does not say what it should */
};

struct python_stack {
    __u64 hash; /* which makes it known; 0: the place is free */
    struct image image;
    __s32 native; /* the id of the native stack */
    __u32 depth;  /* in frames, of which the table has those outlined above */
    __u8 outcome;
    __u8 too_deep;          /* it did not end within PYTHON_DEPTH_MAX frames */
    __u8 instruction_bytes; /* as in the layout, as are the next ones */
    __u8 minor;
    __u16 first_instruction;
    __u16 zero;
    char comm[16]; /* of the thread, where it runs no Python */
    struct python_frame frame[PYTHON_FRAMES];
};

/* Code that is seen in a stack for the first time: it runs, so it is alive. */
struct python_code {
    __u32 type; /* RECORD_PYTHON_CODE */
    __u32 first_line;
    struct image image;
    __u64 code;
    __u64 check;
    __u32 file_bytes, name_bytes, table_bytes; /* all that there are; ~0: unreadable */
    __u8 file_kind, name_kind;                 /* bytes of a character */
    __u16 zero;
    char file[PYTHON_TEXT_MAX];
    char name[PYTHON_TEXT_MAX];
    /* Behind it the table of its lines, for which PYTHON_TABLE_SMALL or PYTHON_TABLE_MAX bytes have room. */
};

/* Code is known by that. */
struct python_code_key {
    struct image image;
    __u64 code;
    __u64 check;
};

#endif
