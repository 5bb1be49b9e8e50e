/* SPDX-License-Identifier: Apache-2.0 */
/* int abi_capture(anything): stores the registers and stack of a call in abi_captured (calls.hpp) and returns 0. */
    .text
    .globl abi_capture
    .type abi_capture, %function
abi_capture:
#if defined(__aarch64__)
    adrp x9, abi_captured
    add x9, x9, :lo12:abi_captured
    stp x0, x1, [x9]
    stp x2, x3, [x9, #16]
    stp x4, x5, [x9, #32]
    stp x6, x7, [x9, #48]
    mov x10, sp
    str x10, [x9, #64]!
    mov w11, #64
1:  ldr x12, [x10], #8
    str x12, [x9, #8]!
    subs w11, w11, #1
    b.ne 1b
    mov x0, #0
#else
    lea abi_captured(%rip), %rax
    mov %rdi, 0(%rax)
    mov %rsi, 8(%rax)
    mov %rdx, 16(%rax)
    mov %rcx, 24(%rax)
    mov %r8, 32(%rax)
    mov %r9, 40(%rax)
    mov %rsp, 48(%rax)
    xor %ecx, %ecx
1:  mov (%rsp,%rcx,8), %rdx
    mov %rdx, 56(%rax,%rcx,8)
    inc %ecx
    cmp $16, %ecx
    jne 1b
    xor %eax, %eax
#endif
    ret
    .size abi_capture, . - abi_capture
    .section .note.GNU-stack, "", %progbits
