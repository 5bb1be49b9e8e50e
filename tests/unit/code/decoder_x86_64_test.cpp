// SPDX-License-Identifier: Apache-2.0
#include "code/decoder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace gpusnoop;

namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t here = 0x1000;

auto arguments(const Bytes& bytes)
{
    return x86_64_decoder().arguments({bytes, here});
}

Argument constant(uint64_t value)
{
    return {Argument::constant, value};
}

} // namespace

TEST_CASE("the values of a call's arguments are derived from the code before it", "[decoder]")
{
    SECTION("code of gcc")
    {
        const Bytes bytes = {
            0x45, 0x31, 0xc9,                         // xor %r9d, %r9d
            0x41, 0xb8, 0xff, 0xff, 0xff, 0xff,       // mov $-1, %r8d
            0x48, 0x8d, 0x15, 0x10, 0x00, 0x00, 0x00, // lea 0x10(%rip), %rdx
            0x48, 0x89, 0xc7,                         // mov %rax, %rdi
            0x48, 0x8d, 0x35, 0xf0, 0xff, 0xff, 0xff, // lea -0x10(%rip), %rsi
            0x48, 0x89, 0xd1,                         // mov %rdx, %rcx
        };
        const auto known = arguments(bytes);
        REQUIRE(known);
        CHECK((*known)[0] == Argument());
        CHECK((*known)[1] == constant(here + 26 - 0x10));
        CHECK((*known)[2] == constant(here + 16 + 0x10));
        CHECK((*known)[3] == (*known)[2]);
        CHECK((*known)[4] == constant(0xffffffff));
    }
    SECTION("code optimized for size")
    {
        const auto known = arguments({0x6a, 0xff, 0x41, 0x58,         // push $-1; pop %r8
                                      0xbe, 0x34, 0x12, 0x40, 0x00}); // mov $0x401234, %esi
        REQUIRE(known);
        CHECK((*known)[1] == constant(0x401234));
        CHECK((*known)[4] == constant(UINT64_MAX));
    }
    SECTION("loaded from the global offset table")
    {
        const auto known = arguments({0x48, 0x8b, 0x35, 0x00, 0x01, 0x00, 0x00}); // mov 0x100(%rip), %rsi
        REQUIRE(known);
        CHECK((*known)[1] == Argument{Argument::loaded, here + 7 + 0x100});
    }
    SECTION("unknown after the register is changed")
    {
        const Bytes lea = {0x48, 0x8d, 0x35, 0x10, 0x00, 0x00, 0x00}; // lea 0x10(%rip), %rsi
        for (const Bytes& then : {Bytes{0xe8, 0, 0, 0, 0},            // call
                                  Bytes{0xc3},                        // ret
                                  Bytes{0x48, 0x8b, 0x36},            // mov (%rsi), %rsi
                                  Bytes{0x48, 0xff, 0xc6},            // inc %rsi
                                  Bytes{0x40, 0xb6, 0x01},            // mov $1, %sil
                                  Bytes{0x5e},                        // pop %rsi
                                  Bytes{0x48, 0x87, 0xf0}}) {         // xchg %rsi, %rax
            Bytes both = lea;
            both.insert(both.end(), then.begin(), then.end());
            const auto known = arguments(both);
            REQUIRE(known);
            CHECK((*known)[1] == Argument());
        }
    }
    CHECK_FALSE(arguments({0x48, 0x8d, 0x35, 0x10})); // truncated
    CHECK_FALSE(arguments({0x06}));                   // invalid
    CHECK(arguments({}));
}

TEST_CASE("branches are found by byte patterns", "[decoder]")
{
    const Bytes bytes = {0x90, 0xe8, 0xfa, 0xff, 0xff, 0xff, 0xff, 0x15, 0x10, 0, 0, 0, 0xff, 0x25, 0x20, 0, 0, 0};
    std::vector<Branch> found;
    x86_64_decoder().branches({bytes, here}, [&](const Branch& b) { found.push_back(b); });
    CHECK(found == std::vector<Branch>{{Branch::call, here + 1, here + 6, here},
                                       {Branch::call_through, here + 6, here + 12, here + 28},
                                       {Branch::jump_through, here + 12, here + 18, here + 50}});
    for (size_t size = 0; size < 6; size++)
        x86_64_decoder().branches({std::span(bytes).first(size), here}, [](const Branch&) { FAIL("too short"); });
}

TEST_CASE("a PLT stub starts at its jump, or at a prefix or endbr64 before it", "[decoder]")
{
    const Bytes with_endbr = {0x90, 0xf3, 0x0f, 0x1e, 0xfa};
    const Bytes with_bnd = {0xf3, 0x0f, 0x1e, 0xfa, 0xf2};
    CHECK(x86_64_decoder().stub_entries(here, {}) == std::array<uint64_t, 3>{here, here, here});
    CHECK(x86_64_decoder().stub_entries(here, with_endbr)[2] == here - 4);
    CHECK(x86_64_decoder().stub_entries(here, with_bnd)[1] == here - 1);
    CHECK(x86_64_decoder().stub_entries(here, with_bnd)[2] == here - 5);
}

TEST_CASE("the jump of a thunk is found", "[decoder]")
{
    const auto jump = [](const Bytes& bytes) { return x86_64_decoder().thunk_jump({bytes, here}); };
    // A thunk of libcuda 535: cmpl $0x321cba00, there(%rip); je; jmp *slot(%rip). One of its bytes is also the opcode
    // of a call.
    const Bytes thunk = {0x81, 0x3d, 0xe8, 0, 0, 0, 0, 0xba, 0x1c, 0x32, 0x74, 0x0c, 0xff, 0x25, 0x20, 0, 0, 0};
    CHECK(jump(thunk) == Branch{Branch::jump_through, here + 12, here + 18, here + 50});
    CHECK(jump({0xff, 0x25, 0x20, 0, 0, 0}) == Branch{Branch::jump_through, here, here + 6, here + 38});
    CHECK_FALSE(jump({0x55, 0xff, 0x25, 0x20, 0, 0, 0}));       // push: the function has a frame
    CHECK_FALSE(jump({0xff, 0x15, 0x20, 0, 0, 0, 0xff, 0x25})); // call
    CHECK_FALSE(jump({0xff, 0xe0}));                            // jmp *%rax
    CHECK_FALSE(jump({0xff, 0x25, 0x20}));
    CHECK_FALSE(jump({}));
}

TEST_CASE("the first call after straight-line code is found", "[decoder]")
{
    const auto first = [](const Bytes& bytes) { return x86_64_decoder().first_call({bytes, here}); };
    CHECK(first({0x90, 0xe8, 0, 0, 0, 0}) == Branch{Branch::call, here + 1, here + 6, here + 6});
    CHECK_FALSE(first({0xc3, 0xe8, 0, 0, 0, 0}));       // ret
    CHECK_FALSE(first({0x74, 0x00, 0xe8, 0, 0, 0, 0})); // je
    CHECK_FALSE(first({0xff, 0xd0}));                   // call *%rax
    CHECK_FALSE(first({0x90}));
}

TEST_CASE("the field that a function returns through a pointer is found", "[decoder]")
{
    const auto field = [](const Bytes& bytes) { return x86_64_decoder().returned_field({bytes, here}); };
    const Bytes load = {0x41, 0x8b, 0x84, 0x24, 0x50, 0x42, 0x03, 0x00}; // mov 0x34250(%r12), %eax
    const Bytes store = {0x41, 0x89, 0x45, 0x00};                        // mov %eax, 0(%r13)
    const auto code = [](std::initializer_list<Bytes> parts) {
        Bytes all;
        for (const Bytes& part : parts)
            all.insert(all.end(), part.begin(), part.end());
        return all;
    };
    const Bytes nop = {0x90}, ret = {0xc3};

    CHECK(field(code({load, store, ret})) == 0x34250);
    // As in NCCL 2.22 and 2.29: there is another instruction between load and store.
    CHECK(field(code({{0x31, 0xdb}, load, {0x31, 0xdb}, store, ret})) == 0x34250);
    CHECK(field(code({load, nop, nop, nop, store, ret})) == std::nullopt);
    // The same field twice is accepted, two different fields are not.
    CHECK(field(code({load, store, load, store, ret})) == 0x34250);
    CHECK(field(code({load, store, {0x8b, 0x47, 0x10}, store, ret})) == std::nullopt);
    // Rejected: another register, another width, a local variable, an array element, another store offset.
    CHECK(field(code({load, {0x41, 0x89, 0x4d, 0x00}, ret})) == std::nullopt);
    CHECK(field(code({{0x49, 0x8b, 0x84, 0x24, 0x50, 0x42, 0x03, 0x00}, store, ret})) == std::nullopt);
    CHECK(field(code({{0x8b, 0x44, 0x24, 0x10}, store, ret})) == std::nullopt);
    CHECK(field(code({{0x8b, 0x04, 0x87}, store, ret})) == std::nullopt);
    CHECK(field(code({load, {0x41, 0x89, 0x45, 0x04}, ret})) == std::nullopt);
    // Truncated and empty code.
    CHECK(field(code({load, store, {0x41, 0x8b}})) == std::nullopt);
    CHECK(field({}) == std::nullopt);
}

TEST_CASE("the constant that a function returns through a pointer is found", "[decoder]")
{
    const auto number = [](const Bytes& bytes) { return x86_64_decoder().returned_constant({bytes, here}); };
    const Bytes store = {0xc7, 0x07, 0xbb, 0x56, 0x00, 0x00}; // movl $22203, (%rdi)
    CHECK(number(store) == 22203);
    CHECK(number({0xc7, 0x07, 0xbb, 0x56, 0x00, 0x00, 0xc7, 0x07, 0xbc, 0x56, 0x00, 0x00}) == std::nullopt);
    CHECK(number({0xc7, 0x47, 0x04, 0xbb, 0x56, 0x00, 0x00}) == std::nullopt); // 4(%rdi)
    CHECK(number({0x89, 0x07}) == std::nullopt);                               // mov %eax, (%rdi)
}
