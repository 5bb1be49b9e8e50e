// SPDX-License-Identifier: Apache-2.0
// Stack unwinder for threads of other processes, based on their registers and memory. If a thread runs while it is
// unwound, the result may be wrong, so callers trust a result only if they get it twice.
#pragma once

#include "code/call_frames.hpp"
#include "code/process_image.hpp"
#include "code/stack_messages.hpp"

#include <cstdint>
#include <vector>

namespace gpusnoop {

struct StackFrame {
    uint64_t address = 0;   // address of the current instruction, or return address
    uint64_t stack = 0;     // stack pointer at that address
    bool innermost = false; // address is the current instruction, not a return address
    ProcessImage::Code code{};

    // Returns an address within the function, even if the call is the function's last instruction.
    uint64_t inside() const { return innermost ? address : address - 1; }
};

// Converts the registers in a question.
FrameRegisters registers_of(const PendingCallsQuestion::Thread& thread);

// Changes registers from their state at a function's entry to their state in the caller after the return.
void unwind_entry(ProcessImage& image, FrameRegisters& registers);

enum class FirstFrame : uint8_t {
    at_instruction, // the address is the current instruction
    after_call,     // the address is a return address
};

// Returns the frames, innermost first. Stops at code without unwind rules.
std::vector<StackFrame> unwind(ProcessImage& image, FrameRegisters registers,
                               FirstFrame first = FirstFrame::at_instruction);

} // namespace gpusnoop
