// SPDX-License-Identifier: Apache-2.0
// Search for pending CUDA calls by unwinding the stacks of threads. It finds calls that began before the probes were
// attached. Runs in a sandboxed helper process (reader/helper.hpp), because it reads untrusted data of other processes.
//
// A frame belongs to a CUDA call if its function is exported or is the target of an exported thunk. Up to release 575,
// NVIDIA's driver exports thunks of 30 bytes, which jump to the function and leave no frame. The search finds any call
// of such a function, for example through the PLT or through a pointer.
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

// Unwinder of stack copies. It uses .eh_frame, so the code needs no frame pointers. Runs in a sandboxed helper process,
// because it reads untrusted data of other processes.
class StackCopyUnwinder {
public:
    static constexpr uint64_t memory_bytes = 256 << 20; // libtorch's .eh_frame alone takes 15 MiB

    // The helper's main loop.
    void serve(Helper::Task& task);

    StackCopyAnswer answer(const StackCopyQuestion& question);

private:
    Modules modules_;
};

// Ids for stacks that helpers have unwound. These ids are larger than all stack ids that BPF programs use.
class UnwoundStacks {
public:
    static bool is(int32_t number) { return number >= first; } // true for an id from this class

    // Returns the id of this stack, or a negative number if there are no addresses or the table is full. addresses:
    // innermost first.
    int32_t number_of(const std::vector<uint64_t>& addresses);

    std::span<const uint64_t> of(int32_t number) const;

private:
    static constexpr int32_t first = 1 << 30;
    static constexpr size_t max_stacks = 4096;

    std::map<std::vector<uint64_t>, int32_t> numbers_;
    std::vector<std::span<const uint64_t>> stacks_; // by id - first; point into the keys of numbers_
};

class PendingCallSearch {
public:
    // symbols[n - 1] is the function name in row n of the probe table, or empty if that function is not searched for.
    // `symbols` must outlive this object.
    explicit PendingCallSearch(std::span<const std::string_view> symbols) : symbols_(symbols) {}

    static constexpr uint64_t memory_bytes = 256 << 20; // libtorch's .eh_frame alone takes 15 MiB

    // The helper's main loop.
    void serve(Helper::Task& task);

    PendingCallsAnswer answer(const PendingCallsQuestion& question);

private:
    // Address of a function in the process -> number of its row in the probe table.
    using Entries = std::map<uint64_t, uint32_t>;

    void add_entries(ProcessImage& image, const ProcessImage::Code& code, Entries& entries);
    PendingCall outermost_call(std::span<const StackFrame> frames, const Entries& entries) const;

    std::span<const std::string_view> symbols_;
    Modules modules_;
    // A function that a module defines. Its addresses are ELF virtual addresses.
    struct Function {
        uint64_t address = 0;
        uint64_t slot = 0; // for a thunk: address of the pointer that it jumps through; otherwise 0
        uint32_t number = 0;
    };
    std::map<std::shared_ptr<const Module>, std::vector<Function>> defined_;
};

} // namespace gpusnoop
