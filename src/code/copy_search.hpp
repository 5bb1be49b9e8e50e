// SPDX-License-Identifier: Apache-2.0
// The callers in a copy of a stack, by what files say of their code (.eh_frame): no frame pointers are needed. A
// helper's work (reader/helper.hpp), as it reads what processes have.
#pragma once

#include "code/process_image.hpp"
#include "code/stack_questions.hpp"
#include "reader/helper.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace gpusnoop {

class CopySearch {
public:
    static constexpr uint64_t memory_bytes = 256 << 20; // libtorch's .eh_frame alone takes 15

    // A helper's whole life.
    void serve(Helper::Task& task);

    CopyAnswer answer(const CopyQuestion& question);

private:
    Modules modules_;
};

// Stacks that were found from outside, by numbers that none in the kernel side's table has.
class FoundStacks {
public:
    static bool is(int32_t number) { return number >= first; }

    // addresses: the innermost first. Negative: there are none, or too many stacks are known already.
    int32_t number_of(const std::vector<uint64_t>& addresses);

    std::span<const uint64_t> of(int32_t number) const;

private:
    static constexpr int32_t first = 1 << 30;
    static constexpr size_t most = 4096;

    std::map<std::vector<uint64_t>, int32_t> numbers_;
    std::vector<std::span<const uint64_t>> stacks_; // by number; the addresses are those of numbers_, which stay
};

} // namespace gpusnoop
