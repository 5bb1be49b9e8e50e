// SPDX-License-Identifier: Apache-2.0
// Unwinds the stack of this thread and compares it with backtrace().
#include "code/unwinder.hpp"

#include "tests/unit/code/elf_fixtures.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <execinfo.h>
#include <fcntl.h>
#include <span>
#include <ucontext.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

struct Seen {
    std::vector<StackFrame> frames;
    std::vector<uint64_t> expected; // return addresses, starting with the caller's caller
    uint64_t own = 0;               // start address of the function that fills this
};

// Converts the registers stored by getcontext().
FrameRegisters registers_in(const ucontext_t& context, bool all_registers)
{
    using R = FrameRegisters;
    R registers;
#if defined(__aarch64__)
    registers[R::ip] = context.uc_mcontext.pc;
    registers[R::sp] = context.uc_mcontext.sp;
    for (size_t number = 19; all_registers && number < R::return_address; number++)
        registers[number] = context.uc_mcontext.regs[number];
#else
    const auto get = [&](int number) { return static_cast<uint64_t>(context.uc_mcontext.gregs[number]); };
    registers[R::ip] = get(REG_RIP);
    registers[R::sp] = get(REG_RSP);
    if (all_registers) {
        registers[R::bp] = get(REG_RBP);
        registers[R::bx] = get(REG_RBX);
        registers[R::r12] = get(REG_R12);
        registers[R::r13] = get(REG_R13);
        registers[R::r14] = get(REG_R14);
        registers[R::r15] = get(REG_R15);
    }
#endif
    return registers;
}

[[gnu::noinline]] Seen look(bool all_registers)
{
    Seen seen;
    std::array<void*, 64> addresses{};
    const auto count = static_cast<size_t>(backtrace(addresses.data(), addresses.size()));
    // Skip this function and, with sanitizers, the interceptor of backtrace().
    const auto all = std::span(addresses).first(count);
    for (auto at = std::ranges::find(all, __builtin_return_address(0)); at != all.end(); ++at)
        seen.expected.push_back(reinterpret_cast<uint64_t>(*at));
    ucontext_t context{};
    getcontext(&context);
    Modules modules;
    ProcessImage image(getpid(), modules);
    seen.frames = unwind(image, registers_in(context, all_registers));
    return seen;
}

// Needs a frame pointer, because its frame size is unknown at compile time.
[[gnu::noinline]] Seen look_from_a_frame_of_any_size(size_t bytes)
{
    volatile auto* const room = static_cast<volatile char*>(__builtin_alloca(bytes));
    room[0] = 1;
    Seen seen = look(true);
    seen.own = room[0] ? reinterpret_cast<uint64_t>(&look_from_a_frame_of_any_size) : 0;
    return seen;
}

std::vector<uint64_t> callers(const Seen& seen)
{
    std::vector<uint64_t> all;
    for (size_t i = 1; i < seen.frames.size(); i++)
        all.push_back(seen.frames[i].address);
    return all;
}

} // namespace

TEST_CASE("a stack is unwound like backtrace() does", "[stacks]")
{
    const volatile size_t bytes = 5000;
    const Seen seen = look_from_a_frame_of_any_size(bytes);
    REQUIRE(seen.expected.size() >= 5);
    CHECK(callers(seen) == seen.expected);
    CHECK(std::ranges::is_sorted(seen.frames, {}, &StackFrame::stack));
    // The second frame belongs to look_from_a_frame_of_any_size().
    const StackFrame& frame = seen.frames[1];
    REQUIRE(frame.code.module);
    const auto start = frame.code.module->frames.function_start(frame.inside() - frame.code.bias);
    REQUIRE(start);
    CHECK(*start + frame.code.bias == seen.own);
}

#if defined(__aarch64__)
namespace {

// Each call signs its return address with a different stack pointer. Sets `is_signed` if at least one signature is not
// 0.
[[gnu::noinline, gnu::target("branch-protection=pac-ret")]] Seen look_behind_signatures(int depth, bool& is_signed)
{
    Seen seen = depth ? look_behind_signatures(depth - 1, is_signed) : look(true);
    const auto* const record = static_cast<const uint64_t*>(__builtin_frame_address(0));
    is_signed |= record[1] != reinterpret_cast<uint64_t>(__builtin_return_address(0)) && record[1] >> 48;
    return seen;
}

} // namespace

TEST_CASE("signed return addresses are followed", "[stacks]")
{
    bool is_signed = false;
    const Seen seen = look_behind_signatures(10, is_signed);
    REQUIRE(seen.expected.size() >= 12);
    CHECK(callers(seen) == seen.expected);
    // Registers that the function does not save must be `unchanged`. The opcode for signatures
    // (DW_CFA_AARCH64_negate_ra_state) has the same number as a SPARC opcode that saves all registers
    // (DW_CFA_GNU_window_save).
    REQUIRE(seen.frames.size() > 3);
    const StackFrame& frame = seen.frames[3];
    REQUIRE(frame.code.module);
    const auto rule = frame.code.module->frames.rule(frame.inside() - frame.code.bias);
    REQUIRE(rule);
    CHECK(rule->registers[28].kind == FrameRule::Saved::unchanged);
    CHECK(rule->registers[30].kind == FrameRule::Saved::on_stack);
    if (!is_signed)
        SKIP("this processor does not sign return addresses");
}
#endif

TEST_CASE("a return probe's trampoline is replaced by the real return address", "[stacks]")
{
    Modules modules;
    ProcessImage image(getpid(), modules);
    using R = FrameRegisters;
    constexpr uint64_t top = 0x7000, trampoline = 0x1000, caller = 0x2000, outer = 0x3000;
    R registers;
    registers[R::sp] = top;
    registers[R::return_address] = trampoline;
    unwind_entry(image, registers);
    CHECK(registers[R::sp] == top + R::return_pops);
    CHECK(registers[R::ip] == (R::return_pops ? std::nullopt : std::optional(trampoline)));
    image.replace_return(top, caller);
    image.replace_return(top + 64, outer);
    registers[R::sp] = top;
    unwind_entry(image, registers);
    CHECK(registers[R::ip] == caller);
    image.replace_return(top, outer); // as if another probed function had made a tail call to the first one
    registers[R::sp] = top;
    unwind_entry(image, registers);
    CHECK(registers[R::ip] == outer);
}

TEST_CASE("if registers are missing, the stack ends early, but has no wrong frames", "[stacks]")
{
    const Seen seen = look(false);
    const std::vector<uint64_t> found = callers(seen);
    REQUIRE(found.size() <= seen.expected.size());
    CHECK(std::ranges::equal(found, std::span(seen.expected).first(found.size())));
}

TEST_CASE("the vdso has unwind rules", "[stacks]")
{
    Modules modules;
    ProcessImage image(getpid(), modules);
    const auto vdso = std::ranges::find_if(image.mappings(), &Mapping::vdso);
    REQUIRE(vdso != image.mappings().end());
    const auto code = image.code_at(vdso->start);
    REQUIRE(code);
    REQUIRE(code->module);
    const auto function = code->module->frames.function_start(vdso->end - vdso->start);
    REQUIRE(function);
    CHECK(code->module->frames.rule(*function));
}

TEST_CASE("invalid registers yield no stack", "[stacks]")
{
    Modules modules;
    ProcessImage image(getpid(), modules);
    FrameRegisters registers;
    CHECK(unwind(image, registers).empty());
    registers[FrameRegisters::ip] = 4096;
    registers[FrameRegisters::sp] = 4096;
    CHECK(unwind(image, registers).empty()); // nothing is mapped there
    registers[FrameRegisters::ip] = reinterpret_cast<uint64_t>(&callers);
    for (const uint64_t stack : {uint64_t{0}, uint64_t{7}, uint64_t{4096}, UINT64_MAX, UINT64_MAX - 7}) {
        registers[FrameRegisters::sp] = stack;
        CHECK(unwind(image, registers).size() <= 1);
    }
}

TEST_CASE("a file without unwind rules is handled", "[stacks]")
{
    elf_fixtures::Bytes file = elf_fixtures::without_sections(elf_fixtures::content("lib.so"));
    elf_fixtures::header(file).e_phnum = 0;
    const Elf elf(elf_fixtures::memory_file(file));
    const CallFrames frames(elf);
    CHECK_FALSE(frames.function_start(0));
    CHECK_FALSE(frames.rule(4096));
}
