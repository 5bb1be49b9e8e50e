// SPDX-License-Identifier: Apache-2.0
#include "tests/bpf/compiled_calls.hpp"

#include <catch2/catch_test_macros.hpp>

namespace gpusnoop {

std::vector<CompiledCall> compiled_calls(const FakeRun& run, const CallSet& calls)
{
    std::vector<CompiledCall> all;
    for (const abi::CallSet& set : abi::call_sets()) {
        for (const Probe& probe : run.probes()) {
            if (!calls.has(probe.row))
                continue;
            const abi::Signature* const signature = abi::find(set, probe);
            if (!signature)
                FAIL("signatures.def lacks " << probe.symbol);
            CompiledCall& made = all.emplace_back(CompiledCall{probe, std::make_shared<abi::Call>(), {}});
            signature->make(*made.call);
            const bool list = probe.row.kind == KIND_LAUNCH_LIST || probe.row.kind == KIND_COPY_BATCH_3D;
            // the caller passed a huge number of elements, of which the test has only a few
            if (const operand count = probe.row.args[ARG_COUNT]; list && operand_present(count.word))
                made.call->captured.registers[count.word] = abi::elements;
            for (size_t element = 0; element < (list ? abi::elements : 1); element++)
                made.passed.push_back(abi::passed_arguments(*signature, *made.call, element));
        }
        break; // the first set suffices: tests/unit/attach/abi compares what the compilers pass
    }
    return all;
}

} // namespace gpusnoop
