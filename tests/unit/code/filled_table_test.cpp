// SPDX-License-Identifier: Apache-2.0
#include "code/dispatch_tables.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

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

TEST_CASE("a function whose first return value is not a loaded pointer fills no table", "[filled_table]")
{
    CHECK(FilledTable().returned(constant(pointer)) == FilledTable::Return::none);
    CHECK(FilledTable().returned({}) == FilledTable::Return::none);
}

TEST_CASE("a pointer that is unknown or unset yields no table", "[filled_table]")
{
    FilledTable filled;
    filled.returned(loaded(pointer));
    filled.store(table + 8, constant(3));
    CHECK(filled.returned(loaded(pointer)) == FilledTable::Return::not_yet_filled);
    CHECK(filled.all().empty());
    filled.store(pointer, loaded(0x7000));
    CHECK(filled.returned(loaded(pointer)) == FilledTable::Return::filled);
    CHECK(filled.all().empty());
}
