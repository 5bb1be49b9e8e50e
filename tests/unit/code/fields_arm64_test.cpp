// SPDX-License-Identifier: Apache-2.0
// Functions that return a number through a pointer, modelled on Debian's NCCL 2.22 for arm64.
#include "code/decoder.hpp"
#include "words_of_arm64.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

constexpr uint32_t load = 0xb94252a0;    // ldr w0, [x21, #592]
constexpr uint32_t store = 0xb9000320;   // str w0, [x25]
constexpr uint32_t farther = 0x9140d2b5; // add x21, x21, #0x34, lsl #12
constexpr uint32_t other = 0x52800013;   // mov w19, #0
constexpr uint32_t go = 0x17ffff70;      // b
constexpr uint32_t finish = 0xd65f03c0;  // ret

std::optional<uint32_t> field(const std::vector<uint32_t>& words)
{
    return arm64_decoder().returned_field({bytes_of(words), 0x56c04});
}

std::optional<uint32_t> number(const std::vector<uint32_t>& words)
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
