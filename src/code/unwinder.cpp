// SPDX-License-Identifier: Apache-2.0
#include "code/unwinder.hpp"

namespace gpusnoop {
namespace {

constexpr size_t frames_max = 128;
constexpr uint64_t frame_bytes_max = 64 << 20;
using R = FrameRegisters;
static_assert(R::kept.size() == KEPT_REGISTERS);

// Changes the registers to those of the caller. False if memory is unreadable. Also false if the stack would not
// shrink, because then the registers do not belong to this code.
bool step(ProcessImage& image, const FrameRule& rule, R& registers)
{
    const auto base = registers[rule.base_register];
    const auto before = registers[R::sp];
    if (!base || !before)
        return false;
    const uint64_t stack = *base + static_cast<uint64_t>(rule.base_offset);
    constexpr bool address_on_stack = R::return_address == R::ip;
    if (stack < *before + address_on_stack || stack - *before > frame_bytes_max)
        return false;
    R caller;
    for (size_t i = 0; i < R::count; i++) {
        const FrameRule::Saved& saved = rule.registers[i];
        if (saved.kind == FrameRule::Saved::on_stack)
            caller[i] = image.word(stack + static_cast<uint64_t>(saved.offset));
        else if (saved.kind == FrameRule::Saved::unchanged)
            caller[i] = registers[i];
    }
    caller[R::sp] = stack;
    caller[R::ip] = caller[R::return_address] = image.return_address(stack, caller[R::return_address]);
    if (stack == *before && caller[R::ip] == registers[R::ip])
        return false;
    if (!caller[R::ip] || !image.is_executable(*caller[R::ip] - 1))
        return false;
    registers = caller;
    return true;
}

} // namespace

FrameRegisters registers_of(const PendingCallsQuestion::Thread& thread)
{
    R registers;
    registers[R::ip] = thread.ip;
    registers[R::sp] = thread.sp;
    for (size_t i = 0; i < R::kept.size(); i++)
        registers[R::kept[i]] = thread.kept[i];
    return registers;
}

void unwind_entry(ProcessImage& image, FrameRegisters& registers)
{
    const uint64_t top = registers[R::sp].value_or(0);
    const auto found = R::return_pops ? image.word(top) : registers[R::return_address];
    registers[R::sp] = top + R::return_pops;
    registers[R::ip] = registers[R::return_address] = image.return_address(top + R::return_pops, found);
}

std::vector<StackFrame> unwind(ProcessImage& image, FrameRegisters registers, FirstFrame first)
{
    std::vector<StackFrame> frames;
    while (frames.size() < frames_max && registers[R::ip] && registers[R::sp]) {
        StackFrame frame{.address = *registers[R::ip],
                         .stack = *registers[R::sp],
                         .innermost = first == FirstFrame::at_instruction && frames.empty()};
        auto code = image.code_at(frame.inside());
        if (!code)
            break;
        frame.code = std::move(*code);
        frames.push_back(frame);
        const Module* const module = frame.code.module.get();
        const auto rule = module ? module->frames.rule(frame.inside() - frame.code.bias) : std::nullopt;
        if (!rule || !step(image, *rule, registers))
            break;
    }
    return frames;
}

} // namespace gpusnoop
