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

constexpr uint64_t pointer = 0x9000, table = 0x8000;

Argument constant(uint64_t value)
{
    return {.kind = Argument::constant, .value = value};
}

Argument loaded(uint64_t from)
{
    return {.kind = Argument::loaded, .value = from};
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

TEST_CASE("a table consists of the values stored at addresses after its start", "[filled_table]")
{
    FilledTable filled;
    CHECK(filled.returned(loaded(pointer)) == FilledTable::Return::not_yet_filled);
    filled.store(table - 8, constant(1));
    filled.store(table, constant(2)); // the first word is the table's size, not an entry
    filled.store(table + 8, constant(3));
    filled.store(table + 24, constant(4));
    filled.store(table + 32, {});
    filled.store(pointer, constant(table));
    CHECK(filled.returned(constant(7)) == FilledTable::Return::filled);
    CHECK(filled.all() == std::vector<Filled>{{8, constant(3)}, {24, constant(4)}});
}

TEST_CASE("a slot stored twice is unknown unless both values are equal", "[filled_table]")
{
    FilledTable filled;
    filled.returned(loaded(pointer));
    for (const uint64_t second : {3, 4})
        filled.store(table + 8, constant(second));
    for (int i = 0; i < 2; i++)
        filled.store(table + 16, constant(5));
    filled.store(pointer, constant(table));
    filled.returned(loaded(pointer));
    CHECK(filled.all() == std::vector<Filled>{{16, constant(5)}});
}

TEST_CASE("a pointer that is not loaded, unknown or unset yields no table", "[filled_table]")
{
    CHECK(FilledTable().returned(constant(pointer)) == FilledTable::Return::none);
    CHECK(FilledTable().returned({}) == FilledTable::Return::none);
    FilledTable filled;
    filled.returned(loaded(pointer));
    filled.store(table + 8, constant(3));
    CHECK(filled.returned(loaded(pointer)) == FilledTable::Return::not_yet_filled);
    CHECK(filled.all().empty());
    filled.store(pointer, loaded(0x7000));
    CHECK(filled.returned(loaded(pointer)) == FilledTable::Return::filled);
    CHECK(filled.all().empty());
}

TEST_CASE("a path consists of offsets and loads, and ends with a load", "[paths]")
{
    const std::optional<PartialPath> path = loaded_from(plus(plus(loaded_from(plus(PartialPath(), 16)), 8), 24));
    CHECK(path_by(path) == Path{16, 32});
    CHECK_FALSE(path_by(PartialPath()));
    CHECK_FALSE(path_by(plus(loaded_from(PartialPath()), 8)));
    CHECK_FALSE(path_by(std::nullopt));
    CHECK(path_by(loaded_from(PartialPath())) == Path{0});
}

TEST_CASE("the number of loads and the offsets are limited", "[paths]")
{
    std::optional<PartialPath> path = PartialPath();
    for (size_t i = 0; i < PartialPath::max_loads; i++)
        path = loaded_from(path);
    CHECK(path_by(path) == Path(PartialPath::max_loads, 0));
    CHECK_FALSE(loaded_from(path));
    CHECK(plus(PartialPath(), PartialPath::max_offset));
    CHECK_FALSE(plus(PartialPath(), PartialPath::max_offset + 1));
    CHECK_FALSE(plus(plus(PartialPath(), PartialPath::max_offset), 1));
    CHECK_FALSE(plus(PartialPath(), -8));
    CHECK_FALSE(plus(std::nullopt, 8));
    CHECK_FALSE(loaded_from(std::nullopt));
}
