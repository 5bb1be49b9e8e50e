// SPDX-License-Identifier: Apache-2.0
// Functions that forward through a table, and the function that fills the table. Code of Debian's libamdhip64 6.4.3 for
// arm64.
#include "code/decoder.hpp"
#include "words_of_arm64.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

// hipMemcpy
constexpr uint64_t here = 0x3055e8;
const Code32 thunk{
    0xd503233f, // paciasp
    0xa9bc7bfd, // stp x29, x30, [sp, #-64]!
    0x910003fd, // mov x29, sp
    0xf9000bf3, // str x19, [sp, #16]
    0xaa0003f3, // mov x19, x0
    0xb9002fe3, // str w3, [sp, #44]
    0xa90307e2, // stp x2, x1, [sp, #48]
    0x97ffe7ef, // bl 2ff5c0
    0xaa0003e4, // mov x4, x0
    0xa94307e2, // ldp x2, x1, [sp, #48]
    0xaa1303e0, // mov x0, x19
    0xf9400bf3, // ldr x19, [sp, #16]
    0xf9441084, // ldr x4, [x4, #2080]
    0xb9402fe3, // ldr w3, [sp, #44]
    0xa8c47bfd, // ldp x29, x30, [sp], #64
    0xd50323bf, // autiasp
    0xaa0403f0, // mov x16, x4
    0xd61f0200, // br x16
};

std::optional<Dispatch> dispatch(const Code32& words)
{
    return arm64_decoder().dispatch({bytes_of(words), here});
}

// Fills the table at 0x2010 and stores its address at 0x2ff8.
constexpr uint64_t filler_at = 0x1000;
const Code32 filler{
    0xd503245f, // 1000: bti c
    0xb0000002, // adrp x2, 2000
    0x91000043, // add x3, x2, #0
    0xc8dffc60, // ldar x0, [x3]
    0x36000080, // tbz w0, #0, 1020
    0x91000042, // add x2, x2, #0
    0xf947fc40, // ldr x0, [x2, #0xff8]
    0xd65f03c0, // ret
    0xd503233f, // 1020: paciasp
    0xa9be7bfd, // stp x29, x30, [sp, #-32]!
    0x910003fd, // mov x29, sp
    0xf9000fe3, // str x3, [sp, #24]
    0x94000400, // bl
    0xf9400fe3, // ldr x3, [sp, #24]
    0xb0000002, // adrp x2, 2000
    0x350000a0, // cbnz w0, 1050
    0xf947fc40, // 1040: ldr x0, [x2, #0xff8]
    0xa8c27bfd, // ldp x29, x30, [sp], #32
    0xd50323bf, // autiasp
    0xd65f03c0, // ret
    0x91004061, // 1050: add x1, x3, #16
    0xd2800200, // mov x0, #16
    0x90000004, // adrp x4, 1000
    0xf942e084, // ldr x4, [x4, #0x5c0]
    0xa9011060, // stp x0, x4, [x3, #16]
    0x90000005, // 1064: adrp x5, 1000
    0xf942e4a5, // ldr x5, [x5, #0x5c8]
    0xf9000825, // 106c: str x5, [x1, #16]
    0xf907fc61, // str x1, [x3, #0xff8]
    0x94000400, // bl
    0xf947fc40, // ldr x0, [x2, #0xff8]
    0xa8c27bfd, // ldp x29, x30, [sp], #32
    0xd65f03c0, // ret
};
constexpr size_t spill = 11, second_add = 25, second_store = 27;

std::vector<Filled> filled(const Code32& words)
{
    return arm64_decoder().filled({bytes_of(words), filler_at});
}

} // namespace

TEST_CASE("arm64: a function that forwards its arguments is recognized", "[dispatch]")
{
    const auto found = dispatch(thunk);
    REQUIRE(found);
    CHECK(found->table_of == 0x2ff5c0);
    CHECK(found->slot == 2080);
    CHECK(found->whole == 0b0111);
    CHECK(found->low == 0b1111);
}

TEST_CASE("arm64: functions that change arguments or do other work are not forwarders", "[dispatch]")
{
    CHECK(dispatch(with(thunk, 9, 0xa9430be1))->whole == 0b0001);  // ldp x1, x2: swapped
    CHECK(dispatch(with(thunk, 10, 0x2a1303e0))->whole == 0b0110); // mov w0, w19: only the lower half
    CHECK(dispatch(with(thunk, 10, 0x2a1303e0))->low == 0b1111);
    CHECK(dispatch(with(thunk, 13, 0xb94033e3))->low ==
          0b0111); // ldr w3, [sp, #48]: the lower half of another argument
    for (const auto& [at, word] : {
             std::pair<size_t, uint32_t>{0, 0xd503201f}, // the return address is checked, but not signed
             {15, 0xd503201f},                           // the return address is signed, but not checked
             {14, 0xa8c37bfd},                           // ldp x29, x30, [sp], #48
             {14, 0xa8c477de},                           // ldp x30, x29, [x30], #64
             {11, 0xd503201f},                           // x19 is not restored
             {6, 0xa90407e2},                            // stp x2, x1, [sp, #64]: the caller's frame
             {12, 0xf94010a4},                           // ldr x4, [x5, #32]: not from the table
             {12, 0xb9441084},                           // ldr w4, [x4, #1040]: half a pointer
             {16, 0xaa0003f0},                           // mov x16, x0
             {17, 0xd63f0200},                           // blr x16
             {8, 0x94000000},                            // calls twice
             {3, 0x3d8007e0},                            // str q0, [sp, #16]
             {3, 0xb4000040},                            // cbz x0
         }) {
        INFO(at << " " << std::hex << word);
        CHECK(!dispatch(with(thunk, at, word)));
    }
    constexpr uint32_t push = 0xa9bf7bfd, pop = 0xa8c17bfd;                   // stp, ldp x29, x30: 16 bytes
    constexpr uint32_t more = 0xd10043ff, less = 0x910043ff;                  // sub, add sp, sp, #16
    constexpr uint32_t sign = 0xd503233f, check = 0xd50323bf;                 // paciasp, autiasp
    constexpr uint32_t call = 0x94000004, take = 0xf9400401, go = 0xd61f0020; // bl; ldr x1, [x0, #8]; br x1
    CHECK(dispatch({push, call, take, pop, go})->slot == 8);
    CHECK(!dispatch({push, call, call, take, pop, go}));
    CHECK(!dispatch({0xa9be7bfd, call, take, pop, go})); // 32 bytes
    CHECK(dispatch({more, sign, push, call, take, pop, check, less, go}));
    CHECK(!dispatch({more, sign, push, call, take, pop, less, check, go})); // checked with a different stack pointer
    CHECK(!dispatch({sign, sign, push, call, take, pop, check, go}));
    for (size_t size = 0; size < thunk.size(); size++)
        CHECK(!dispatch(first(thunk, size)));
}

TEST_CASE("arm64: entries of a table are found in the code that fills it", "[dispatch]")
{
    const auto found = filled(filler);
    REQUIRE(found.size() == 2);
    CHECK(found[0] == Filled{8, {Argument::loaded, 0x15c0}});
    CHECK(found[1] == Filled{16, {Argument::loaded, 0x15c8}});
    // An address computed by code.
    CHECK(filled(with(with(filler, second_add, 0x10000005), second_add + 1, 0xd503201f)).at(1) ==
          Filled{16, {Argument::constant, 0x1064}});
}

TEST_CASE("arm64: a table with ambiguous stores is unknown", "[dispatch]")
{
    CHECK(filled(with(filler, second_store, 0xf9000425)).empty()); // str x5, [x1, #8]: the same slot twice
    CHECK(filled(with(filler, second_store, 0xb9001025)).empty()); // str w5
    CHECK(filled(with(filler, second_store, 0xf8010c25)).empty()); // str x5, [x1, #16]!
    CHECK(filled(with(filler, spill, 0xf9000be3)).empty());        // spilled to a slot other than the loaded one
    CHECK(filled(with(filler, 10, 0x34ffffe9)).empty());           // cbz w9, back
    CHECK(filled(with(filler, 6, 0xf9400020)).empty());            // ldr x0, [x1]
    CHECK(filled(first(filler, 20)).empty());                      // the pointer is never set
    CHECK(filled({}).empty());
    // Two paths lead to the stores, with different values of x3.
    Code32 two = with(filler, 14, 0x340000c0); // cbz w0, 1050
    two[16] = 0xd503201f;
    CHECK(filled(two).size() == 2);
    two[14] = 0x350000c0;
    two[15] = 0x910020e3; // add x3, x7, #8
    two[18] = two[19] = 0xd503201f;
    CHECK(filled(two).empty());
}

namespace {

// hipKernelNameRef() of 5.7.1 at 0x1000, and its callee at 0x2000.
const Code32 name_of{
    0xd503245f, // bti c
    0xb4000120, // cbz x0
    0xd503233f, // paciasp
    0xa9bf7bfd, // stp x29, x30, [sp, #-16]!
    0x910003fd, // mov x29, sp
    0x940003fb, // bl 2000
    0xf9400000, // ldr x0, [x0]
    0xa8c17bfd, // ldp x29, x30, [sp], #16
    0xd50323bf, // autiasp
    0xd65f03c0, // ret
};
const Code32 name_place{
    0xd503245f, // bti c
    0xf9404400, // ldr x0, [x0, #136]
    0x9100a000, // add x0, x0, #40
    0xd65f03c0, // ret
};

std::optional<Path> path(const Code32& function, const Code32& called = name_place)
{
    return arm64_decoder().path({bytes_of(function), 0x1000},
                                [&](uint64_t address) { return bytes_of(address == 0x2000 ? called : Code32()); });
}

} // namespace

TEST_CASE("arm64: the path from an object to its kernel's name is found", "[instructions]")
{
    CHECK(path(name_of) == Path{0x88, 0x28});
    CHECK(path(with(name_of, 9, 0xd65f0bff)) == Path{0x88, 0x28});         // retaa
    CHECK(path({0xf9401400, 0xf9401400, 0xd65f03c0}) == Path{0x28, 0x28}); // ldr x0, [x0, #40], twice
    CHECK(path({0xf9401401, 0xaa0103e0, 0x140003fe}, name_of) ==
          std::nullopt); // b 2000: a tail call, whose load from x1 is not followed
    CHECK(path({0xf9401401, 0xaa0103e0, 0x140003fe}, {0xf9404400, 0xd65f03c0}) == Path{0x28, 0x88});
    CHECK(!path({}));
    CHECK(!path(first(name_of, name_of.size() - 1))); // no return
    CHECK(!path(name_of, {0xd2800000, 0xd65f03c0}));  // mov x0, #0
    CHECK(!path(name_of, {0xf9400020, 0xd65f03c0}));  // ldr x0, [x1]: another argument
    CHECK(!path(name_of, {0xf85f8000, 0xd65f03c0}));  // ldur x0, [x0, #-8]
    CHECK(!path(name_of, {0xb9404400, 0xd65f03c0}));  // ldr w0
    CHECK(!path(name_of, {0xf8408400, 0xd65f03c0}));  // ldr x0, [x0], #8
    CHECK(!path(name_of, {0x94000000, 0xd65f03c0}));  // calls itself
    CHECK(!path(with(name_of, 5, 0xd63f0020)));       // blr x1
    CHECK(!path(name_place));                         // returns an address within the object
}
