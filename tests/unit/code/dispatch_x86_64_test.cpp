// SPDX-License-Identifier: Apache-2.0
// Functions that forward through a table, and the function that fills the table. Code of Debian's libamdhip64 6.4.3 and
// 7.2.4.
#include "code/decoder.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace gpusnoop;

namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t here = 0x3a8850;
constexpr uint8_t rdi = 1, rsi = 2, rdx = 4, rcx = 8;

// hipMemcpy
const Bytes thunk{
    0xf3, 0x0f, 0x1e, 0xfa,                   // endbr64
    0x48, 0x83, 0xec, 0x28,                   // sub $0x28, %rsp
    0x48, 0x89, 0x7c, 0x24, 0x18,             // mov %rdi, 0x18(%rsp)
    0x48, 0x89, 0x74, 0x24, 0x10,             // mov %rsi, 0x10(%rsp)
    0x48, 0x89, 0x54, 0x24, 0x08,             // mov %rdx, 0x8(%rsp)
    0x89, 0x4c, 0x24, 0x04,                   // mov %ecx, 0x4(%rsp)
    0xe8, 0x30, 0xaa, 0xff, 0xff,             // call 3a32a0
    0x8b, 0x4c, 0x24, 0x04,                   // mov 0x4(%rsp), %ecx
    0x48, 0x8b, 0x54, 0x24, 0x08,             // mov 0x8(%rsp), %rdx
    0x48, 0x8b, 0x80, 0x20, 0x08, 0x00, 0x00, // mov 0x820(%rax), %rax
    0x48, 0x8b, 0x74, 0x24, 0x10,             // mov 0x10(%rsp), %rsi
    0x48, 0x8b, 0x7c, 0x24, 0x18,             // mov 0x18(%rsp), %rdi
    0x48, 0x83, 0xc4, 0x28,                   // add $0x28, %rsp
    0xff, 0xe0,                               // jmp *%rax
};

std::optional<Dispatch> dispatch(const Bytes& bytes)
{
    return x86_64_decoder().dispatch({bytes, here});
}

// Replaces the bytes at this offset.
Bytes with(Bytes code, size_t at, const Bytes& bytes)
{
    std::ranges::copy(bytes, code.begin() + static_cast<std::ptrdiff_t>(at));
    return code;
}

// The beginning of a function that fills a table, up to the stores.
Bytes begin_of_filler()
{
    return {
        0xf3, 0x0f, 0x1e, 0xfa,                   // 0x1000: endbr64
        0x0f, 0xb6, 0x05, 0xf5, 0x0f, 0x00, 0x00, // movzbl 0x2000, %eax
        0x84, 0xc0,                               // test %al, %al
        0x74, 0x08,                               // je
        0x48, 0x8b, 0x05, 0xf2, 0x0f, 0x00, 0x00, // mov 0x2008, %rax
        0xc3,                                     // ret
        0x48, 0x83, 0xec, 0x08,                   // sub $8, %rsp
    };
}

// Decodes a function that fills a table by `stores`, and then sets the pointer to the table by lea and mov.
std::vector<Filled> filled(const Bytes& stores, uint64_t table)
{
    Bytes code = begin_of_filler();
    code.insert(code.end(), stores.begin(), stores.end());
    const auto append = [&code](const Bytes& opcode, uint64_t target) {
        code.insert(code.end(), opcode.begin(), opcode.end());
        const uint64_t next = 0x1000 + code.size() + 4;
        for (unsigned i = 0; i < 4; i++)
            code.push_back(static_cast<uint8_t>((target - next) >> 8 * i));
    };
    append({0x48, 0x8d, 0x05}, table);  // lea table, %rax
    append({0x48, 0x89, 0x05}, 0x2008); // mov %rax, 0x2008
    code.push_back(0xc3);
    return x86_64_decoder().filled({code, 0x1000});
}

} // namespace

TEST_CASE("a function that forwards its arguments is recognized", "[dispatch]")
{
    const auto found = dispatch(thunk);
    REQUIRE(found);
    CHECK(found->table_of == 0x3a32a0);
    CHECK(found->slot == 0x820);
    CHECK(found->whole == (rdi | rsi | rdx));
    CHECK(found->low == (rdi | rsi | rdx | rcx));
}

TEST_CASE("functions that change arguments or do other work are not forwarders", "[dispatch]")
{
    // Two arguments are swapped.
    auto found = dispatch(with(with(thunk, 48, {0x48, 0x8b, 0x74, 0x24, 0x18}), 53, {0x48, 0x8b, 0x7c, 0x24, 0x10}));
    REQUIRE(found);
    CHECK(found->whole == rdx);
    // The upper half of one argument is lost.
    found = dispatch(with(thunk, 36, {0x90, 0x8b, 0x54, 0x24, 0x08}));
    REQUIRE(found);
    CHECK(found->whole == (rdi | rsi));
    CHECK(found->low == (rdi | rsi | rdx | rcx));
    // The stack pointer is not restored, so the target would read wrong arguments.
    CHECK(!dispatch(with(thunk, 61, {0x20})));
    // The function stores to the caller's frame.
    CHECK(!dispatch(with(thunk, 12, {0x28})));
    // The jump target is not a pointer from the table.
    CHECK(!dispatch(with(thunk, 43, {0x81})));
    CHECK(!dispatch(with(thunk, 62, {0xff, 0xe1})));
    for (size_t size = 0; size < thunk.size(); size++)
        CHECK(!dispatch(Bytes(thunk.begin(), thunk.begin() + static_cast<std::ptrdiff_t>(size))));
}

TEST_CASE("table entries stored one by one are found", "[dispatch]")
{
    const Bytes stores{
        0x48, 0xc7, 0x05, 0xe2, 0x1f, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, // movq $0x10, 0x3008
        0x48, 0x8d, 0x05, 0x00, 0x01, 0x00, 0x00,                         // lea 0x112d, %rax
        0x48, 0x89, 0x05, 0xdc, 0x1f, 0x00, 0x00,                         // mov %rax, 0x3010
    };
    const auto found = filled(stores, 0x3000);
    REQUIRE(found.size() == 2);
    CHECK(found[0] == Filled{0x8, {Argument::constant, 0x10}});
    CHECK(found[1] == Filled{0x10, {Argument::constant, 0x112d}});
}

TEST_CASE("table entries stored by vector instructions are found", "[dispatch]")
{
    const Bytes stores{
        0xf3, 0x0f, 0x7e, 0x05, 0x00, 0x01, 0x00, 0x00, // movq 0x1123, %xmm0
        0x0f, 0x16, 0x05, 0x00, 0x02, 0x00, 0x00,       // movhps 0x122a, %xmm0
        0x0f, 0x11, 0x05, 0xd3, 0x1f, 0x00, 0x00,       // movups %xmm0, 0x3004
    };
    const auto found = filled(stores, 0x3000);
    REQUIRE(found.size() == 2);
    CHECK(found[0].pointer == Argument{Argument::loaded, 0x1123});
    CHECK(found[1].pointer == Argument{Argument::loaded, 0x122a});
    CHECK(found[1].slot == found[0].slot + 8);
}

TEST_CASE("a table slot written twice is unknown", "[dispatch]")
{
    Bytes stores;
    for (uint8_t i = 0; i < 2; i++) {
        const Bytes one{
            0x48, 0x8d, 0x05, 0x00,
            0x01, 0x00, 0x00, // lea, a different address each time
            0x48, 0x89, 0x05, static_cast<uint8_t>(0xe1 - 14 * i),
            0x1f, 0x00, 0x00, // mov %rax, 0x300a
        };
        stores.insert(stores.end(), one.begin(), one.end());
    }
    CHECK(filled(stores, 0x3000).empty());
}

TEST_CASE("functions that do not fill a table have no entries", "[dispatch]")
{
    CHECK(x86_64_decoder().filled({begin_of_filler(), 0x1000}).empty());
    CHECK(x86_64_decoder().filled({Bytes{0x31, 0xc0, 0xc3}, 0x1000}).empty());
    CHECK(x86_64_decoder().filled({Bytes{}, 0x1000}).empty());
}

namespace {

// hipKernelNameRef() of 5.7.1 and later at 0x1000, and its callee at 0x2000.
const Bytes name_of{
    0xf3, 0x0f, 0x1e, 0xfa,       // endbr64
    0x48, 0x85, 0xff,             // test %rdi, %rdi
    0x74, 0x10,                   // je
    0x48, 0x83, 0xec, 0x08,       // sub $8, %rsp
    0xe8, 0xee, 0x0f, 0x00, 0x00, // call 2000
    0x48, 0x8b, 0x00,             // mov (%rax), %rax
    0x48, 0x83, 0xc4, 0x08,       // add $8, %rsp
    0xc3,                         // ret
};
const Bytes name_place{
    0xf3, 0x0f, 0x1e, 0xfa,                   // endbr64
    0x48, 0x8b, 0x87, 0x98, 0x00, 0x00, 0x00, // mov 0x98(%rdi), %rax
    0x48, 0x83, 0xc0, 0x28,                   // add $0x28, %rax
    0xc3,                                     // ret
};

std::optional<Path> path(const Bytes& function, const Bytes& called = name_place)
{
    return x86_64_decoder().path({function, 0x1000},
                                 [&](uint64_t address) { return address == 0x2000 ? called : Bytes(); });
}

} // namespace

TEST_CASE("the path from an object to its kernel's name is found", "[instructions]")
{
    CHECK(path(name_of) == Path{0x98, 0x28});
    const Bytes direct{0x48, 0x8b, 0x47, 0x28, 0x48, 0x8b, 0x40, 0x28, 0xc3}; // as clang might compile it
    CHECK(path(direct) == Path{0x28, 0x28});
    CHECK(!path({}));
    CHECK(!path(Bytes(name_of.begin(), name_of.end() - 1)));                 // no return
    CHECK(!path(name_of, {0x31, 0xc0, 0xc3}));                               // xor %eax, %eax
    CHECK(!path(name_of, {0x48, 0x8b, 0x06, 0xc3}));                         // another argument
    CHECK(!path(name_of, {0x48, 0x83, 0xef, 0x08, 0x48, 0x8b, 0x07, 0xc3})); // sub $8, %rdi: before the object
    CHECK(!path(name_of, {0xe8, 0xfb, 0xff, 0xff, 0xff}));                   // calls itself
    CHECK(!path(with(name_of, 13, {0xff, 0xd0, 0x90, 0x90, 0x90})));         // call *%rax
    CHECK(!path(name_place));                                                // returns an address within the object
}
