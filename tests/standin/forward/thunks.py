#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the assembly of a library whose functions forward to another library:

    python3 thunks.py MACHINE call|tail < NAMES > thunks.S

A line of NAMES is a function, and the name of its target if that differs. `call`: each function sets up a frame and
calls its target. `tail`: it jumps to its target, with the stack and return address of its own caller.
"""
import sys

# `call` copies eight words of the caller's stack, the most that any function takes (cuIpcOpenMemHandle_v2).
X86_64 = {"tail": "    jmp *.Lslot_{name}(%rip)\n",
          "call": """    push %rbp
    mov %rsp, %rbp
    .irp word, 72, 64, 56, 48, 40, 32, 24, 16
    push \\word(%rbp)
    .endr
    call *.Lslot_{name}(%rip)
    leave
    ret
"""}
ARM64 = {"tail": """    adrp x16, .Lslot_{name}
    ldr x16, [x16, #:lo12:.Lslot_{name}]
    br x16
""",
         "call": """    stp x29, x30, [sp, #-16]!
    mov x29, sp
    .irp word, 64, 48, 32, 16
    ldp x16, x17, [x29, #\\word]
    stp x16, x17, [sp, #-16]!
    .endr
    adrp x16, .Lslot_{name}
    ldr x16, [x16, #:lo12:.Lslot_{name}]
    blr x16
    mov sp, x29
    ldp x29, x30, [sp], #16
    ret
"""}
BODIES = {"x86_64": X86_64, "aarch64": ARM64}


def main():
    body = BODIES[sys.argv[1]][sys.argv[2]]
    rows = [(words[0], words[-1]) for words in (line.split() for line in sys.stdin) if words]
    out = sys.stdout.write
    out("    .text\n")
    for name, _ in rows:
        out(f"    .p2align 4\n    .globl {name}\n    .type {name}, %function\n{name}:\n.Lthunk_{name}:\n")
        out(body.format(name=name) + f"    .size {name}, . - {name}\n")
    out("    .data\n    .p2align 3\n    .globl forward_slots\n    .hidden forward_slots\nforward_slots:\n")
    out("".join(f".Lslot_{name}: .quad 0\n" for name, _ in rows))
    out('    .section .data.rel.ro, "aw"\n    .p2align 3\n    .globl forwards\n    .hidden forwards\nforwards:\n')
    out("".join(f"    .quad .Lname_{target}, .Lthunk_{name}\n" for name, target in rows))
    out(f"    .globl forward_count\n    .hidden forward_count\nforward_count: .quad {len(rows)}\n")
    out('    .section .rodata.str1.1, "aMS", %progbits, 1\n')
    out("".join(f'.Lname_{target}: .asciz "{target}"\n' for target in sorted({target for _, target in rows})))
    out('    .section .note.GNU-stack, "", %progbits\n')


main()
