// SPDX-License-Identifier: Apache-2.0
#include "code/dispatch_tables.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

constexpr TrackedValue one{TrackedValue::entered, 1, true}, two{TrackedValue::entered, 2, true}, nothing;

OwnFrame frame_of(int64_t bytes)
{
    OwnFrame frame;
    REQUIRE(frame.move_stack(-bytes));
    return frame;
}

} // namespace

TEST_CASE("a stored word is loaded again", "[own_frame]")
{
    OwnFrame frame = frame_of(32);
    CHECK(frame.stack() == -32);
    CHECK(frame.store(-32, 8, one));
    CHECK(frame.store(-8, 8, two));
    CHECK(frame.load(-32, 8) == one);
    CHECK(frame.load(-8, 8) == two);
    CHECK(frame.load(-24, 8) == nothing);
}

TEST_CASE("a value of half a word is known, but marked as incomplete", "[own_frame]")
{
    OwnFrame frame = frame_of(16);
    frame.store(-16, 8, one);
    CHECK(frame.load(-16, 4) == TrackedValue{TrackedValue::entered, 1, false});
    CHECK(frame.load(-12, 4) == nothing);
    frame.store(-8, 4, two);
    CHECK(frame.load(-8, 8) == nothing);
    CHECK(frame.load(-8, 4) == TrackedValue{TrackedValue::entered, 2, false});
}

TEST_CASE("a store that overlaps a word makes it unknown", "[own_frame]")
{
    for (const int64_t at : {-20, -12}) {
        OwnFrame frame = frame_of(32);
        frame.store(-16, 8, one);
        CHECK(frame.store(at, 8, two));
        CHECK(frame.load(-16, 8) == nothing);
        CHECK(frame.load(at, 8) == two);
    }
    OwnFrame frame = frame_of(32);
    frame.store(-16, 8, one);
    frame.store(-24, 8, two);
    frame.store(-8, 8, two);
    CHECK(frame.load(-16, 8) == one); // adjacent stores do not change it
}

TEST_CASE("stores outside the function's own frame are refused", "[own_frame]")
{
    OwnFrame frame = frame_of(16);
    CHECK_FALSE(frame.store(0, 8, one));
    CHECK_FALSE(frame.store(-4, 8, one));
    CHECK_FALSE(frame.store(-24, 8, one));
    CHECK(frame.store(-16, 8, one));
}

TEST_CASE("words below the stack pointer are dropped", "[own_frame]")
{
    OwnFrame frame = frame_of(32);
    frame.store(-32, 8, one);
    frame.store(-16, 8, two);
    CHECK(frame.move_stack(16));
    CHECK(frame.move_stack(-16));
    CHECK(frame.load(-32, 8) == nothing);
    CHECK(frame.load(-16, 8) == two);
}

TEST_CASE("moves of the stack pointer are limited, and never go above its value at entry", "[own_frame]")
{
    OwnFrame frame;
    CHECK_FALSE(frame.move_stack(8));
    CHECK_FALSE(OwnFrame().move_stack(-4097));
    frame = frame_of(4096);
    CHECK_FALSE(frame.move_stack(4097));
    CHECK(frame.move_stack(4096));
    CHECK(frame.stack() == 0);
}
