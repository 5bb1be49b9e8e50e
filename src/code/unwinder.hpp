// SPDX-License-Identifier: Apache-2.0
// The frames of a thread's stack, by its registers and the memory of its process. The thread may run meanwhile: what
// is found then is as it was, or nonsense, and only what is found twice is to be believed.
#pragma once

#include "code/call_frames.hpp"
#include "code/process_image.hpp"
#include "code/stack_messages.hpp"

#include <cstdint>
#include <vector>

namespace gpusnoop {

struct StackFrame {
    uint64_t address = 0;   // in the function: where it is, or where it goes on
    uint64_t stack = 0;     // its stack pointer there
    bool innermost = false; // the address is an instruction's own; else of the one behind a call
    ProcessImage::Code code{};

    // Within the function, also where the call was its last instruction.
    uint64_t inside() const { return innermost ? address : address - 1; }
};

// Those that a question tells.
FrameRegisters registers_of(const PendingCallsQuestion::Thread& thread);

// At the begin of a function: those that its caller has where it returns to.
void unwind_entry(ProcessImage& image, FrameRegisters& registers);

enum class FirstFrame : uint8_t {
    at_instruction, // the address is that of the current instruction
    after_call,     // the address is a return address
};

// Innermost first. They end where a file does not say how to get to a function's caller.
std::vector<StackFrame> unwind(ProcessImage& image, FrameRegisters registers,
                               FirstFrame first = FirstFrame::at_instruction);

} // namespace gpusnoop
