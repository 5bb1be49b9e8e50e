// SPDX-License-Identifier: Apache-2.0
#include "attach/refusal.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

namespace {

template<int kind = 0>
constexpr bpf_insn call(int32_t function)
{
    return {.code = BPF_JMP | BPF_CALL, .dst_reg = 0, .src_reg = kind, .off = 0, .imm = function};
}

TEST_CASE("calls of bpf_probe_read become calls of bpf_probe_read_user, other instructions do not change")
{
    const bpf_insn constant = {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 4};
    std::vector<bpf_insn> code{call(BPF_FUNC_probe_read),
                               call(BPF_FUNC_probe_read_str),
                               call(BPF_FUNC_ktime_get_ns),
                               call<BPF_PSEUDO_CALL>(BPF_FUNC_probe_read),
                               call<BPF_PSEUDO_KFUNC_CALL>(BPF_FUNC_probe_read),
                               constant};
    gpusnoop::restore_user_reads(code);
    std::vector<int32_t> calls;
    for (const bpf_insn& one : code)
        calls.push_back(one.imm);
    CHECK(calls == std::vector<int32_t>{BPF_FUNC_probe_read_user, BPF_FUNC_probe_read_user_str, BPF_FUNC_ktime_get_ns,
                                        BPF_FUNC_probe_read, BPF_FUNC_probe_read, 4});
}

} // namespace
