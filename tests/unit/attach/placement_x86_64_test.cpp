// SPDX-License-Identifier: Apache-2.0
#include "attach/placement.hpp"

#include <catch2/catch_test_macros.hpp>
#include <initializer_list>
#include <vector>

using gpusnoop::Placement;

namespace gpusnoop {
static bool operator==(const Placement& a, const Placement& b)
{
    return a.delta == b.delta && a.emulated == b.emulated;
}
} // namespace gpusnoop

namespace {

using Code = std::vector<uint8_t>;

Code operator+(Code a, const Code& b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

constexpr Placement single_stepped{0, false};
constexpr Placement at(uint64_t delta)
{
    return {delta, true};
}

const Code endbr64{0xf3, 0x0f, 0x1e, 0xfa};
const Code state_check{0x81, 0x3d, 0x11, 0x22, 0x33,
                       0x00, 0x00, 0xba, 0x1c, 0x32}; // libcuda: cmpl $0x321cba00,state(%rip)
const Code je{0x74, 0x0c};
const Code push_rbp{0x55};
const Code ret{0xc3};

} // namespace

TEST_CASE("an instruction that the kernel emulates is probed directly", "[placement]")
{
    for (uint8_t reg = 0; reg < 8; reg++) {
        CHECK(gpusnoop::place(Code{static_cast<uint8_t>(0x50 + reg)}) == at(0));
        CHECK(gpusnoop::place(Code{0x41, static_cast<uint8_t>(0x50 + reg)}) == at(0));
    }
    for (uint8_t condition = 0; condition < 16; condition++) {
        CHECK(gpusnoop::place(Code{static_cast<uint8_t>(0x70 + condition), 0x10}) == at(0));
        CHECK(gpusnoop::place(Code{0x0f, static_cast<uint8_t>(0x80 + condition), 1, 2, 3, 4}) == at(0));
    }
    CHECK(gpusnoop::place(Code{0x90}) == at(0));
    CHECK(gpusnoop::place(Code{0xeb, 0x10}) == at(0));
    CHECK(gpusnoop::place(Code{0xe9, 1, 2, 3, 4}) == at(0));
    CHECK(gpusnoop::place(Code{0xe8, 1, 2, 3, 4}) == at(0));
}

TEST_CASE("other code is probed at its first byte and single-stepped", "[placement]")
{
    for (const Code& code : {
             Code{},
             Code{0xff, 0x25, 1, 2, 3, 4},                   // jmp *mem(%rip)
             Code{0xff, 0xe0},                               // jmp *%rax
             Code{0xff, 0x75, 0x08},                         // push mem
             Code{0x68, 1, 2, 3, 4},                         // push $imm32
             Code{0x66, 0x90},                               // refused or emulated, depending on the kernel version
             Code{0x66, 0x50},                               // push %ax
             Code{0x66, 0xe9, 1, 2, 3, 4},                   // the kernel refuses it with ENOTSUPP
             Code{0x66, 0x74, 0x10},                         //
             Code{0xf3, 0x90},                               // pause
             Code{0x48, 0x50},                               // push with REX.W: single-stepped
             Code{0x43, 0x50},                               //
             Code{0x41, 0x90},                               // xchg %eax,%r8d: resembles a nop
             Code{0x0f, 0x1f, 0x44, 0x00, 0x00},             // long nop: emulated by newer kernels only
             Code{0x0f, 0x05},                               // syscall
             Code{0x48, 0x83, 0xec, 0x08, 0x55},             // sub $8,%rsp: changes the return address's offset
             Code{0x48, 0x8d, 0x64, 0x24, 0xf8, 0x55},       // lea -8(%rsp),%rsp
             Code{0x48, 0x89, 0xe5, 0x55},                   // mov %rsp,%rbp
             Code{0x48, 0x89, 0xc7, 0x55},                   // mov %rax,%rdi: an argument
             Code{0x49, 0x89, 0xc0, 0x55},                   // mov %rax,%r8: an argument
             Code{0x48, 0x8b, 0x3d, 1, 2, 3, 4, 0x55},       // mov mem(%rip),%rdi
             Code{0x4c, 0x8b, 0x05, 1, 2, 3, 4, 0x55},       // mov mem(%rip),%r8
             Code{0x44, 0x8b, 0x05, 1, 2, 3, 4, 0x55},       // mov mem(%rip),%r8d
             Code{0x4c, 0x8d, 0x0d, 1, 2, 3, 4, 0x55},       // lea mem(%rip),%r9
             Code{0x80, 0x0d, 1, 2, 3, 4, 1, 0x55},          // orb $1,mem(%rip): a store
             Code{0x83, 0x05, 1, 2, 3, 4, 1, 0x55},          // addl $1,mem(%rip): a store
             Code{0x83, 0xe8, 0x01, 0x55},                   // sub $1,%eax
             Code{0x81, 0x3c, 0x25, 1, 2, 3, 4, 5, 6, 0x55}, // cmpl with an absolute address: longer (SIB byte)
             Code{0x31, 0xff, 0x55},                         // xor %edi,%edi: an argument
             Code{0x31, 0x05, 1, 2, 3, 4, 0x55},             // xor %eax,mem(%rip): a store
             Code{0x87, 0xc0, 0x55},                         //
             Code{0x89, 0x05, 1, 2, 3, 4, 0x55},             // mov %eax,mem(%rip): a store
             Code{0x48, 0x89, 0xc4, 0x55},                   // mov %rax,%rsp
             Code{0x48, 0x8b, 0x07, 0x55},                   // mov (%rdi),%rax: may fault
             Code{0x48, 0x83, 0x3f, 0x00, 0x74, 0x0c},       // cmpq $0,(%rdi)
             ret + push_rbp,
         }) {
        CAPTURE(code);
        CHECK(gpusnoop::place(code) == single_stepped);
    }
}

TEST_CASE("the probe is placed after libcuda's state check", "[placement]")
{
    const Code jump_to_driver{0xff, 0x25, 1, 2, 3, 4};
    CHECK(gpusnoop::place(state_check + je + jump_to_driver) == at(10));
    CHECK(gpusnoop::place(state_check + je) == at(10));
    CHECK(gpusnoop::place(endbr64 + state_check + je) == at(14)); // the probe is just within the first 16 bytes
    CHECK(gpusnoop::place(endbr64 + state_check + Code{0x0f, 0x84}) == at(14));
    CHECK(gpusnoop::place(state_check + jump_to_driver) == single_stepped);
}

TEST_CASE("endbr64 is skipped only if an emulated instruction follows", "[placement]")
{
    CHECK(gpusnoop::place(endbr64 + push_rbp) == at(4));
    CHECK(gpusnoop::place(endbr64 + Code{0x41, 0x57}) == at(4));
    CHECK(gpusnoop::place(endbr64) == single_stepped);
    CHECK(gpusnoop::place(endbr64 + ret) == single_stepped);
    CHECK(gpusnoop::place(endbr64 + Code{0x48, 0x83, 0xec, 0x08}) == single_stepped);
    CHECK(gpusnoop::place(Code{0xf3, 0x0f, 0x1e, 0xfb, 0x55}) == single_stepped); // endbr32
}

TEST_CASE("the lengths of harmless instructions are decoded correctly", "[placement]")
{
    const std::initializer_list<Code> harmless = {
        endbr64,
        state_check,
        {0x80, 0x3d, 1, 2, 3, 4, 5},
        {0x83, 0x3d, 1, 2, 3, 4, 5},
        {0x48, 0x81, 0x3d, 1, 2, 3, 4, 5, 6, 7, 8},
        {0x48, 0x83, 0x3d, 1, 2, 3, 4, 5},
        {0xf6, 0x05, 1, 2, 3, 4, 5},
        {0x83, 0xff, 0x01},       // cmp $1,%edi
        {0x48, 0x83, 0xfe, 0x00}, // cmp $0,%rsi
        {0x49, 0x83, 0xf8, 0x00}, // cmp $0,%r8
        {0x84, 0xc0},             // test %al,%al
        {0x85, 0xff},             // test %edi,%edi
        {0x48, 0x85, 0xff},       // test %rdi,%rdi
        {0x45, 0x85, 0xc9},       // test %r9d,%r9d
        {0x31, 0xc0},
        {0x33, 0xc0},
        {0xb8, 1, 2, 3, 4},
        {0x48, 0x89, 0xf8}, // mov %rdi,%rax
        {0x4c, 0x89, 0xc0}, // mov %r8,%rax
        {0x8b, 0x05, 1, 2, 3, 4},
        {0x48, 0x8b, 0x05, 1, 2, 3, 4},
        {0x4c, 0x8b, 0x15, 1, 2, 3, 4},
        {0x4c, 0x8b, 0x1d, 1, 2, 3, 4},
        {0x44, 0x8b, 0x15, 1, 2, 3, 4},
        {0x0f, 0xb6, 0x05, 1, 2, 3, 4},
        {0x48, 0x8d, 0x05, 1, 2, 3, 4},
        {0x4c, 0x8d, 0x15, 1, 2, 3, 4},
        {0x4c, 0x8d, 0x1d, 1, 2, 3, 4},
        {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}, // movabs $imm64,%rax
        {0x89, 0xf8},                         // mov %edi,%eax
        {0x49, 0x89, 0xf2},                   // mov %rsi,%r10
        {0x40, 0x0f, 0xb6, 0xc6},             // movzbl %sil,%eax
        {0x48, 0x39, 0xfe},                   // cmp %rdi,%rsi
        {0x81, 0xfa, 1, 2, 3, 4},             // cmp $imm32,%edx
        {0x40, 0x80, 0xff, 0x01},             // cmp $1,%dil
        {0xf6, 0xc2, 0x01},                   // test $1,%dl
    };
    for (const Code& code : harmless) {
        CAPTURE(code);
        CHECK(gpusnoop::place(code + push_rbp) == at(code.size()));
        CHECK(gpusnoop::place(code + je) == at(code.size()));
        CHECK(gpusnoop::place(endbr64 + code + push_rbp) == at(code.size() + 4));
        CHECK(gpusnoop::place(code + ret) == single_stepped);
        for (size_t size = 0; size <= code.size(); size++) {
            CAPTURE(size);
            CHECK(gpusnoop::place(Code(code.begin(), code.begin() + static_cast<ptrdiff_t>(size))) == single_stepped);
        }
    }
}

TEST_CASE("at most four instructions are skipped", "[placement]")
{
    const Code xor_eax{0x31, 0xc0};
    const Code four = xor_eax + xor_eax + xor_eax + xor_eax;
    CHECK(gpusnoop::place(four + push_rbp) == at(8));
    CHECK(gpusnoop::place(four + xor_eax + push_rbp) == single_stepped);
}

TEST_CASE("arbitrary code never leads to a read or a placement beyond the end", "[placement]")
{
    Code code(3);
    for (unsigned n = 0; n < 1U << 24; n += 7) {
        code = {static_cast<uint8_t>(n), static_cast<uint8_t>(n >> 8), static_cast<uint8_t>(n >> 16)};
        const Placement placement = gpusnoop::place(code);
        if (placement.delta >= code.size() || (!placement.emulated && placement.delta != 0))
            FAIL("delta " << placement.delta << " for " << n);
    }
}
