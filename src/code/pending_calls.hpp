// SPDX-License-Identifier: Apache-2.0
// Search for pending CUDA calls by unwinding the stacks of threads. It finds calls that began before the probes were
// attached. Runs in a helper (reader/helper.hpp), because it reads data of other processes.
//
// A frame belongs to a CUDA call if its function is an exported one, or the target of an exported thunk: up to release
// 575, NVIDIA's driver exports thunks of 30 bytes, which jump to the function and leave no frame. It does not matter
// how the function was called.
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

// Unwinds copies of stacks with .eh_frame, so that no frame pointers are needed. Runs in a helper, because it reads
// data of other processes.
class StackCopyUnwinder {
public:
    static constexpr uint64_t memory_bytes = 256 << 20; // libtorch's .eh_frame alone takes 15 MiB

    // The helper's main loop.
    void serve(Helper::Task& task);

    StackCopyAnswer answer(const StackCopyQuestion& question);

private:
    Modules modules_;
};

// Ids for stacks that helpers have unwound. They are larger than all stack ids that BPF programs use.
class UnwoundStacks {
public:
    static bool is(int32_t number) { return number >= first; } // true for such an id

    // addresses: innermost first. Returns a negative number if there are no addresses, or if the table is full.
    int32_t number_of(const std::vector<uint64_t>& addresses);

    std::span<const uint64_t> of(int32_t number) const;

private:
    static constexpr int32_t first = 1 << 30;
    static constexpr size_t max_stacks = 4096;

    std::map<std::vector<uint64_t>, int32_t> numbers_;
    std::vector<std::span<const uint64_t>> stacks_; // by number - first; point into the keys of numbers_
};

class PendingCallSearch {
public:
    // symbols[n - 1] is the function of probe row n; it is empty for rows that are not searched for. Must outlive the
    // object.
    explicit PendingCallSearch(std::span<const std::string_view> symbols) : symbols_(symbols) {}

    static constexpr uint64_t memory_bytes = 256 << 20; // libtorch's .eh_frame alone takes 15 MiB

    // The helper's main loop.
    void serve(Helper::Task& task);

    PendingCallsAnswer answer(const PendingCallsQuestion& question);

private:
    // For one process: address of a function -> number of its probe row.
    using Entries = std::map<uint64_t, uint32_t>;

    void add_entries(ProcessImage& image, const ProcessImage::Code& code, Entries& entries);
    PendingCall outermost_call(std::span<const StackFrame> frames, const Entries& entries) const;

    std::span<const std::string_view> symbols_;
    Modules modules_;
    // A function that a module defines, with ELF virtual addresses.
    struct Function {
        uint64_t address = 0;
        uint64_t slot = 0; // if it is a thunk: address of the pointer that it jumps through
        uint32_t number = 0;
    };
    std::map<std::shared_ptr<const Module>, std::vector<Function>> defined_;
};

} // namespace gpusnoop
