// SPDX-License-Identifier: Apache-2.0
#include "attach/user_reads.hpp"

#include "base/fd.hpp"

#include <bpf/bpf.h>
#include <iterator>

namespace gpusnoop {
namespace {

// On one byte of the program's own stack.
bool may_call(bpf_func_id function)
{
    const bpf_insn code[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_10, .off = 0, .imm = 0},
        {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1, .src_reg = 0, .off = 0, .imm = -8},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .src_reg = 0, .off = 0, .imm = 1},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .src_reg = 0, .off = 0, .imm = 0},
        {.code = BPF_JMP | BPF_CALL, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = function},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
    };
    return bool(Fd(bpf_prog_load(BPF_PROG_TYPE_KPROBE, "gpusnoop_try", "GPL", code, std::size(code), nullptr)));
}

} // namespace

bool kernel_is_confidential()
{
    return !may_call(BPF_FUNC_probe_read_kernel) && may_call(BPF_FUNC_probe_read_user);
}

void put_user_reads_back(std::span<bpf_insn> code)
{
    for (bpf_insn& one : code) {
        if (one.code != (BPF_JMP | BPF_CALL) || one.src_reg) // BPF_PSEUDO_CALL, BPF_PSEUDO_KFUNC_CALL
            continue;
        if (one.imm == BPF_FUNC_probe_read)
            one.imm = BPF_FUNC_probe_read_user;
        else if (one.imm == BPF_FUNC_probe_read_str)
            one.imm = BPF_FUNC_probe_read_user_str;
    }
}

} // namespace gpusnoop
