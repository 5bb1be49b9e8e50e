// SPDX-License-Identifier: Apache-2.0
// Compiled calls of the functions that a tool probes. The compiler placed their arguments, not the probe table, so they
// show whether the kernel side reads the right ones.
#pragma once

#include "tests/bpf/fake_run.hpp"

#include <map>
#include <memory>
#include <vector>

namespace gpusnoop {

struct CompiledCall {
    const Probe& probe;
    std::shared_ptr<abi::Call> call;
    // Values that the caller passed, by `enum argument`. Of an array of structures, one map per element.
    std::vector<std::map<int, uint64_t>> passed;

    // Replaces a value that the caller passed, wherever the compiler placed it. In an array, replaces that of the first
    // element. A value can be replaced only once.
    void pass(argument which, uint64_t value);
};

// One call, by one compiler, of each probed function in the set.
std::vector<CompiledCall> compiled_calls(const FakeRun& run, const CallSet& calls);

} // namespace gpusnoop
