// SPDX-License-Identifier: Apache-2.0
// Calls that are written as text: "cuMemAlloc_v2 out=a000 bytes=1009 =2" is a call that fails with result 2. Arguments
// have the names of signatures.def. Results that the call stores (out, pitch), addresses and handles are hexadecimal.
#pragma once

#include "tests/bpf/fake_run.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

std::vector<std::string> words_of(std::string_view text);

struct WrittenCall {
    std::string function;
    Arguments arguments{};
    uint64_t result = 0;
};

WrittenCall parse_call(FakeRun& run, std::span<const std::string> words);

// Makes calls, which are separated by semicolons. Words before a call: "thread" makes it on another thread, "3*" makes
// it three times, "enter" enters it only. "leave" leaves the innermost call, "see-from-start" is
// FakeRun::see_from_start().
void make_calls(FakeRun& run, std::string_view calls);

} // namespace gpusnoop
