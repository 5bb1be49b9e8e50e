/* SPDX-License-Identifier: Apache-2.0 */
/* int abi_capture(anything): stores what an entry probe sees of a call into abi_captured (calls.hpp), returns 0. */
    .text
    .globl abi_capture
    .type abi_capture, @function
abi_capture:
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
    ret
    .size abi_capture, . - abi_capture
    .section .note.GNU-stack, "", @progbits
