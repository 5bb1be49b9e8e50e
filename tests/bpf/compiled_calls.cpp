// SPDX-License-Identifier: Apache-2.0
#include "tests/bpf/compiled_calls.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <span>

namespace gpusnoop {
namespace {

// Returns where the call has this value, of which both halves are unique.
std::vector<std::span<std::byte>> places_of(abi::Call& call, uint64_t value)
{
    const auto passed = std::as_bytes(std::span(&value, 1)).first(value >> 32 ? 8 : 4);
    std::vector<std::span<std::byte>> places;
    const std::span<std::byte> regions[] = {std::as_writable_bytes(std::span(call.captured.registers)),
                                            std::as_writable_bytes(std::span(call.captured.stack)), call.memory};
    for (std::span<std::byte> region : regions)
        for (; region.size() >= passed.size(); region = region.subspan(4))
            if (std::ranges::equal(region.first(passed.size()), passed))
                places.push_back(region.first(passed.size()));
    return places;
}

} // namespace

void CompiledCall::pass(argument which, uint64_t value, size_t element)
{
    uint64_t& now = passed.at(element).at(which);
    const auto [found, is_new] = places.try_emplace({element, which});
    if (is_new)
        found->second = places_of(*call, now);
    if (found->second.empty())
        FAIL(probe.symbol << " has no value " << now << " for " << abi::argument_name(which));
    for (const std::span<std::byte> place : found->second)
        memcpy(place.data(), &value, place.size());
    now = value;
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
