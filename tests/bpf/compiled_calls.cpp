// SPDX-License-Identifier: Apache-2.0
#include "tests/bpf/compiled_calls.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <span>

namespace gpusnoop {
namespace {

// Returns the number of places.
template<class Word>
size_t replace(std::span<std::byte> bytes, uint64_t from, uint64_t to)
{
    size_t places = 0;
    for (; bytes.size() >= sizeof(Word); bytes = bytes.subspan(sizeof(Word))) {
        Word word;
        memcpy(&word, bytes.data(), sizeof(Word));
        if (word != from)
            continue;
        word = static_cast<Word>(to);
        memcpy(bytes.data(), &word, sizeof(Word));
        places++;
    }
    return places;
}

} // namespace

void CompiledCall::pass(argument which, uint64_t value)
{
    uint64_t& before = passed.at(0).at(which);
    size_t places = 0;
    const std::span<std::byte> blocks[] = {std::as_writable_bytes(std::span(call->captured.registers)),
                                           std::as_writable_bytes(std::span(call->captured.stack)), call->memory};
    for (const std::span<std::byte> bytes : blocks)
        places += before >> 32 ? replace<uint64_t>(bytes, before, value) : replace<uint32_t>(bytes, before, value);
    if (places == 0)
        FAIL(probe.symbol << " has no value " << before << " for " << abi::argument_name(which));
    before = value;
}

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
