// SPDX-License-Identifier: Apache-2.0
// Stack unwinder for threads of other processes, from registers and memory. A thread may run meanwhile, which can
// produce nonsense, so callers trust only a result that they get twice.
#pragma once

#include "code/call_frames.hpp"
#include "code/process_image.hpp"
#include "code/stack_messages.hpp"

#include <cstdint>
#include <vector>

namespace gpusnoop {

struct StackFrame {
    uint64_t address = 0;   // current instruction, or return address
    uint64_t stack = 0;     // stack pointer at that address
    bool innermost = false; // address is that of the current instruction, not a return address
    ProcessImage::Code code{};

    // An address within the function, even if its last instruction is the call.
    uint64_t inside() const { return innermost ? address : address - 1; }
};

// Registers of the thread in a question.
FrameRegisters registers_of(const PendingCallsQuestion::Thread& thread);

// Changes the registers at a function's entry to those of its caller after the return.
void unwind_entry(ProcessImage& image, FrameRegisters& registers);

enum class FirstFrame : uint8_t {
    at_instruction, // the address is that of the current instruction
    after_call,     // the address is a return address
};

// Frames, innermost first. Ends at code without unwind rules.
std::vector<StackFrame> unwind(ProcessImage& image, FrameRegisters registers,
                               FirstFrame first = FirstFrame::at_instruction);

} // namespace gpusnoop
