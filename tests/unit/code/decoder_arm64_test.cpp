// SPDX-License-Identifier: Apache-2.0
#include "attach/placement.hpp"
#include "code/decoder.hpp"
#include "words_of_arm64.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace gpusnoop;

namespace {

constexpr uint64_t here = 0x41000;

auto arguments(const Code32& words)
{
    return arm64_decoder().arguments({bytes_of(words), here});
}

std::vector<Branch> branches(const Code32& words)
{
    std::vector<Branch> found;
    arm64_decoder().branches({bytes_of(words), here}, [&](const Branch& b) { found.push_back(b); });
    return found;
}

Argument constant(uint64_t value)
{
    return {Argument::constant, value};
}

bool simulated(uint32_t word)
{
    const Placement placed = place_on_arm64(bytes_of({word, 0xd503201f}));
    CHECK(placed.delta == 0);
    return placed.emulated;
}

} // namespace

TEST_CASE("arm64: the values of a call's arguments are derived from the code before it", "[decoder]")
{
    SECTION("code of gcc")
    {
        const auto known = arguments({
            0x90000001, // adrp x1, here
            0xb0000003, // adrp x3, here + 0x1000
            0x91004021, // add x1, x1, #0x10
            0x91080063, // add x3, x3, #0x200
            0xaa0303e2, // mov x2, x3
            0x12800004, // mov w4, #-1
            0xf90007ff, // str xzr, [sp, #8]
            0xa9007fff, // stp xzr, xzr, [sp]
        });
        REQUIRE(known);
        CHECK((*known)[0] == Argument());
        CHECK((*known)[1] == constant(here + 0x10));
        CHECK((*known)[2] == constant(here + 0x1200));
        CHECK((*known)[3] == (*known)[2]);
        CHECK((*known)[4] == constant(0xffffffff));
    }
    SECTION("loaded from the global offset table")
    {
        const auto known = arguments({0x90000001, 0xf9400821}); // adrp x1, here; ldr x1, [x1, #16]
        REQUIRE(known);
        CHECK((*known)[1] == Argument{Argument::loaded, here + 16});
    }
    SECTION("a constant set by several instructions")
    {
        const auto known = arguments({0xd2824680, 0xf2aacf00}); // movz x0, #0x1234; movk x0, #0x5678, lsl #16
        REQUIRE(known);
        CHECK((*known)[0] == constant(0x56781234));
    }
    SECTION("unknown after a call")
    {
        const auto known = arguments({0x12800004, 0x94000000}); // mov w4, #-1; bl
        REQUIRE(known);
        CHECK((*known)[4] == Argument());
    }
    SECTION("unknown after a load, a pair load, or a base update")
    {
        CHECK((*arguments({0x12800004, 0xb94003e4}))[4] == Argument()); // ldr w4, [sp]
        CHECK((*arguments({0x12800004, 0xa94013e3}))[4] == Argument()); // ldp x3, x4, [sp]
        CHECK((*arguments({0x12800004, 0xf8008481}))[4] == Argument()); // str x1, [x4], #8
    }
    SECTION("a vector load does not change the general register of the same number")
    {
        CHECK((*arguments({0x12800004, 0x3dc003e4}))[4] == constant(0xffffffff)); // ldr q4, [sp]
    }
    CHECK_FALSE(arm64_decoder().arguments({bytes_of({0x12800004}), here + 2}));
}

TEST_CASE("arm64: calls are found by their instruction words", "[decoder]")
{
    CHECK(branches({0xd503201f, 0x97ffffff}) == std::vector<Branch>{{Branch::call, here + 4, here + 8, here}});
    // A PLT stub; then a call through the same pointer.
    CHECK(branches({0x90000010, 0xf9400a11, 0x91004210, 0xd61f0220}) ==
          std::vector<Branch>{{Branch::jump_through, here, here + 16, here + 16}});
    CHECK(branches({0x90000010, 0xf9400a11, 0xd63f0220}) ==
          std::vector<Branch>{{Branch::call_through, here + 8, here + 12, here + 16}});
    CHECK(branches({0x90000010, 0xf9400a11, 0xd61f0200}).empty()); // the branch uses x16, but the load set x17
    CHECK(arm64_decoder().stub_entries(here + 4, bytes_of({0xd503245f})) ==
          std::array<uint64_t, 3>{here + 4, here + 4, here}); // bti c
    CHECK(arm64_decoder().first_call({bytes_of({0x12800004, 0x94000002}), here})->target == here + 12);
    CHECK_FALSE(arm64_decoder().first_call({bytes_of({0x54000040, 0x94000002}), here}));
}

// cuCtxSynchronize of driver 535.
TEST_CASE("arm64: the thunk of a driver function ends in a jump through a pointer", "[decoder]")
{
    Code32 gate = {0x90000001, 0x52800020, 0x72a00020, 0xb9400821, 0x6b00003f, 0x540000a0,
                   0xb0000000, 0xf9400800, 0xaa0003f0, 0xd61f0200, 0x52800080, 0xd65f03c0};
    const auto jump = arm64_decoder().thunk_jump({bytes_of(gate), here});
    REQUIRE(jump);
    CHECK(*jump == Branch{Branch::jump_through, here + 36, here + 40, here + 0x1010});
    gate[2] = 0xa9bf7bfd; // stp x29, x30, [sp, #-16]!: pushes a frame
    CHECK_FALSE(arm64_decoder().thunk_jump({bytes_of(gate), here}));
}

TEST_CASE("arm64: probes stay on the first instruction", "[placement]")
{
    for (const uint32_t word : {0x90000001U, 0x10000001U, 0x14000004U, 0x94000004U, 0x540000a0U, 0x34000040U,
                                0xb5000040U, 0x36000040U, 0xb7f80040U, 0xd61f0200U, 0xd63f0200U, 0xd65f03c0U})
        CHECK(simulated(word));
    // stp, sub sp, paciasp, bti c, nop, mov, ldr, retaa, bc.eq
    for (const uint32_t word : {0xa9bf7bfdU, 0xd10083ffU, 0xd503233fU, 0xd503245fU, 0xd503201fU, 0x52800080U,
                                0xf9400800U, 0xd65f0bffU, 0x540000b0U})
        CHECK_FALSE(simulated(word));
    CHECK_FALSE(place_on_arm64(std::vector<uint8_t>{0x01, 0x00, 0x00}).emulated);
}

// Functions that return a number through a pointer, modelled on Debian's NCCL 2.22 for arm64.
namespace {

constexpr uint32_t load = 0xb94252a0;    // ldr w0, [x21, #592]
constexpr uint32_t store = 0xb9000320;   // str w0, [x25]
constexpr uint32_t farther = 0x9140d2b5; // add x21, x21, #0x34, lsl #12
constexpr uint32_t other = 0x52800013;   // mov w19, #0
constexpr uint32_t go = 0x17ffff70;      // b
constexpr uint32_t finish = 0xd65f03c0;  // ret

std::optional<uint32_t> field(const Code32& words)
{
    return arm64_decoder().returned_field({bytes_of(words), 0x56c04});
}

std::optional<uint32_t> number(const Code32& words)
{
    return arm64_decoder().returned_constant({bytes_of(words), 0x54960});
}

} // namespace

TEST_CASE("arm64: the field that a function returns through a pointer is found", "[decoder]")
{
    CHECK(field({load, store, finish}) == 592);
    CHECK(field({farther, other, load, store, go}) == 0x34250);
    CHECK(field({0x9140d2a1, 0xaa0103f5, load, store}) == 0x34250); // add x1, x21, ...; mov x21, x1
    CHECK(field({load, other, other, store, finish}) == 592);
    CHECK(field({load, other, other, other, store, finish}) == std::nullopt);
    // The same field twice is accepted, two different fields are not.
    CHECK(field({load, store, load, store, finish}) == 592);
    CHECK(field({load, store, 0xb94012a0, store, finish}) == std::nullopt);
    // Rejected: x21 may or may not have an offset from the start of the structure.
    CHECK(field({farther, go, load, store, finish}) == std::nullopt);
    CHECK(field({farther, 0xaa0003f5, load, store, finish}) == std::nullopt); // mov x21, x0
    // Rejected: another register; an overwritten register; another width; a word on the stack; a word in the frame; a
    // variable; an array element.
    CHECK(field({load, 0xb9000321, finish}) == std::nullopt);
    CHECK(field({load, 0x52800000, store, finish}) == std::nullopt);
    CHECK(field({0xf94252a0, store, finish}) == std::nullopt);
    CHECK(field({0xb94253e0, store, finish}) == std::nullopt);
    CHECK(field({0xb94253a0, store, finish}) == std::nullopt);
    CHECK(field({0x90000015, load, store, finish}) == std::nullopt);
    CHECK(field({0x90000015, 0xf94002b5, load, store, finish}) == std::nullopt); // the address is loaded from the GOT
    CHECK(field({0xb8616aa0, store, finish}) == std::nullopt);
    CHECK(field({load, 0xb9000720, finish}) == std::nullopt); // str w0, [x25, #4]
    CHECK(field({}) == std::nullopt);
}

TEST_CASE("arm64: the constant that a function returns through a pointer is found", "[decoder]")
{
    constexpr uint32_t set = 0x528ad762, put = 0xb9000022; // mov w2, #22203; str w2, [x1]
    CHECK(number({0xaa0003e1, 0xb40000a0, set, 0x52800000, put, finish}) == 22203);
    CHECK(number({0x528b2f69, 0xb9000009, finish}) == 22907);
    CHECK(number({set, put, 0x52800022, put, finish}) == std::nullopt);
    CHECK(number({set, 0xb9000422, finish}) == std::nullopt); // str w2, [x1, #4]
    CHECK(number({0xb9400002, put, finish}) == std::nullopt); // ldr w2, [x0]
    CHECK(number({set, go, put, finish}) == std::nullopt);
}
