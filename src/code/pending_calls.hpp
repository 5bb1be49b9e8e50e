// SPDX-License-Identifier: Apache-2.0
// Which calls of CUDA threads are in, by their stacks: for calls that began before there were probes. A helper's work
// (reader/helper.hpp), as it reads what processes have.
//
// A frame is in such a call where its function is the exported one, or what the exported one jumps to: NVIDIA's driver
// exports thunks of 30 bytes (up to 575), which leave no frame, and implementations behind them. What called it does
// not matter, be it through a pointer or by a jump.
#pragma once

#include "code/process_image.hpp"
#include "code/stack_messages.hpp"
#include "code/unwinder.hpp"
#include "reader/helper.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace gpusnoop {

// The callers in a copy of a stack, by what files say of their code (.eh_frame): no frame pointers are needed. A
// helper's work (reader/helper.hpp), as it reads what processes have.
class StackCopyUnwinder {
public:
    static constexpr uint64_t memory_bytes = 256 << 20; // libtorch's .eh_frame alone takes 15

    // A helper's whole life.
    void serve(Helper::Task& task);

    StackCopyAnswer answer(const StackCopyQuestion& question);

private:
    Modules modules_;
};

// Stacks that were found from outside, by numbers that none in the kernel side's table has.
class UnwoundStacks {
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

class PendingCallSearch {
public:
    // The functions to look for, at the numbers of their rows less one; others have no name there. Must outlive the
    // object.
    explicit PendingCallSearch(std::span<const std::string_view> symbols) : symbols_(symbols) {}

    static constexpr uint64_t memory_bytes = 256 << 20; // libtorch's .eh_frame alone takes 15

    // A helper's whole life.
    void serve(Helper::Task& task);

    PendingCallsAnswer answer(const PendingCallsQuestion& question);

private:
    // Where calls begin in one process, and the number of their rows.
    using Entries = std::map<uint64_t, uint32_t>;

    void add_entries(ProcessImage& image, const ProcessImage::Code& code, Entries& entries);
    PendingCall call_in(std::span<const StackFrame> frames, const Entries& entries) const;

    std::span<const std::string_view> symbols_;
    Modules modules_;
    // One that a module defines; addresses are in its file's own numbering.
    struct Function {
        uint64_t address = 0;
        uint64_t slot = 0; // that it jumps through, where it is a thunk
        uint32_t number = 0;
    };
    std::map<std::shared_ptr<const Module>, std::vector<Function>> defined_;
};

} // namespace gpusnoop
