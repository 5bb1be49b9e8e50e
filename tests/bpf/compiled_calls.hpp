// SPDX-License-Identifier: Apache-2.0
// Compiled calls of the functions that a tool probes. The compiler placed their arguments, not the probe table, so they
// show whether the kernel side reads the right ones.
#pragma once

#include "tests/bpf/fake_run.hpp"

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace gpusnoop {

struct CompiledCall {
    const Probe& probe;
    std::shared_ptr<abi::Call> call;
    // Values that the caller passed, by `enum argument`. One map per element if they are an array of
    // structures.
    std::vector<std::map<int, uint64_t>> passed;

    bool passes(argument which) const { return passed[0].contains(which); }
    // Replaces a value that the caller passed, wherever the compiler placed it. element: of an array.
    void pass(argument which, uint64_t value, size_t element = 0);

    std::map<std::pair<size_t, int>, std::vector<std::span<std::byte>>> places{}; // in `call`, of replaced values
};

// One call, by one compiler, of each probed function in the set.
std::vector<CompiledCall> compiled_calls(const FakeRun& run, const CallSet& calls);

} // namespace gpusnoop
