// SPDX-License-Identifier: Apache-2.0
#include "rows/holdings.hpp"

#include "bpf/shared/histogram.h"
#include "bpf/shared/record.h"

#include <catch2/catch_test_macros.hpp>
#include <set>

using namespace gpusnoop;

namespace {

const image process{100, 7};

CallDelta calls(probe_kind kind, uint64_t count, uint64_t bytes, uint32_t context = 0, holding what = HOLDING_DEVICE)
{
    CallDelta delta;
    delta.key.image = process;
    delta.key.kind = static_cast<uint8_t>(kind);
    delta.key.memory.holding = static_cast<uint8_t>(what);
    delta.key.subject = context;
    delta.key.stack = -1;
    delta.key.device = DEVICE_UNKNOWN;
    delta.key.duration = BUCKET_NONE;
    delta[CALL_COUNT] = count;
    delta[MEMORY_BYTES] = bytes;
    return delta;
}

holding_record ended(uint32_t context)
{
    holding_record record{};
    record.type = RECORD_CONTEXT_ENDED;
    record.context = context;
    record.key.image = process;
    return record;
}

// Record of an allocation of device memory whose entry was overwritten.
holding_record replaced(uint64_t bytes, uint32_t context, uint8_t device)
{
    holding_record record{};
    record.type = RECORD_REPLACED;
    record.key.image = process;
    record.held.bytes = bytes;
    record.held.stack = -1;
    record.held.context = context;
    record.held.holding = HOLDING_DEVICE;
    record.held.device = device;
    return record;
}

Amount sum(const Holdings::Amounts& amounts)
{
    Amount total;
    for (const auto& [row, amount] : amounts)
        total.add(amount.count, amount.bytes);
    return total;
}

bool is(const Amount& amount, int64_t count, int64_t bytes)
{
    return amount.count == count && amount.bytes == bytes;
}

} // namespace

TEST_CASE("held memory is allocations minus frees")
{
    Holdings holdings;
    holdings.add(calls(KIND_ALLOC, 3, 3000));
    holdings.add(calls(KIND_FREE, 1, 1000));
    CHECK(is(sum(holdings.now()), 2, 2000));
    // Calls have separate rows by duration; held memory does not.
    CallDelta timed = calls(KIND_FREE, 2, 2000);
    timed.key.duration = 17;
    timed.key.layer = LAYER_RUNTIME;
    holdings.add(timed);
    CHECK(holdings.now().empty());
    CHECK(!holdings.holds(process));
}

TEST_CASE("a free that is read before its allocation is counted")
{
    Holdings holdings;
    holdings.add(calls(KIND_FREE, 1, 1000));
    CHECK(is(sum(holdings.now()), -1, -1000));
    holdings.add(calls(KIND_ALLOC, 1, 1000));
    CHECK(holdings.now().empty());
}

TEST_CASE("failed calls, frees of unknown memory and trims change nothing")
{
    Holdings holdings;
    CallDelta failed = calls(KIND_ALLOC, 1, 1000);
    failed.key.result = 2;
    holdings.add(failed);
    holdings.add(calls(KIND_FREE, 1, 0, 0, HOLDING_NONE));
    holdings.add(calls(KIND_TRIM, 1, 0, 0, HOLDING_POOL_OBJECT));
    CHECK(holdings.now().empty());
    CHECK(!holdings.approximate(process));
}

TEST_CASE("untracked allocations are not counted, and the process's memory is marked as approximate")
{
    Holdings holdings;
    CallDelta untracked = calls(KIND_ALLOC, 5, 5000);
    untracked.key.flags = CALL_UNTRACKED;
    holdings.add(untracked);
    CHECK(holdings.now().empty());
    CHECK(holdings.approximate(process));
    holdings.forget({process});
    CHECK(!holdings.approximate(process));
}

TEST_CASE("the end of a context releases its memory")
{
    Holdings holdings;
    holdings.add(calls(KIND_ALLOC, 2, 2000, 5));
    holdings.add(calls(KIND_ALLOC, 1, 700, 6));
    holdings.add(calls(KIND_ALLOC, 1, 64, 0, HOLDING_POOL)); // does not belong to a context
    holdings.context_ended(ended(5));
    CHECK(is(sum(holdings.now()), 4, 2764)); // not released yet: some of its allocations may be unread
    holdings.apply_ended_contexts();
    CHECK(is(sum(holdings.now()), 2, 764));
    CHECK(is(sum(holdings.drain_released()), 2, 2000));
    CHECK(is(sum(holdings.drain_released()), 0, 0));
    CHECK(holdings.ended(5));
    CHECK(holdings.sweepable_entries() == 2 + 1);
    // Ignores a free that was in flight, and an address that is allocated again.
    holdings.add(calls(KIND_FREE, 1, 1000, 5));
    holdings.replaced(replaced(1000, 5, DEVICE_UNKNOWN));
    CHECK(is(sum(holdings.now()), 2, 764));
    CHECK(is(sum(holdings.drain_released()), 0, 0));
}

TEST_CASE("the end of an unknown context makes held memory approximate if memory may have been allocated in it")
{
    Holdings holdings;
    holdings.add(calls(KIND_ALLOC, 1, 64, 0, HOLDING_POOL));
    holdings.context_ended(ended(0));
    holdings.apply_ended_contexts();
    CHECK(!holdings.approximate(process));
    holdings.add(calls(KIND_ALLOC, 1, 1000));
    holdings.context_ended(ended(0));
    holdings.apply_ended_contexts();
    CHECK(holdings.approximate(process));
    CHECK(is(sum(holdings.now()), 2, 1064));
}

TEST_CASE("memory freed by an untraced call is released when its address is allocated again")
{
    Holdings holdings;
    holdings.distinguish(true, true);
    CallDelta first = calls(KIND_ALLOC, 1, 1000, 5);
    first.key.memory.size = static_cast<uint16_t>(histogram_bucket(1000));
    first.key.device = 1;
    holdings.add(first);
    holdings.replaced(replaced(1000, 5, 1));
    CHECK(holdings.now().empty());
    CHECK(is(sum(holdings.drain_released()), 1, 1000));
}

TEST_CASE("ends of contexts and replaced entries may be recorded in any order")
{
    for (const bool replaced_first : {false, true}) {
        Holdings holdings;
        holdings.distinguish(false, false);
        holdings.add(calls(KIND_ALLOC, 1, 1000, 5));
        if (replaced_first)
            holdings.replaced(replaced(1000, 5, DEVICE_UNKNOWN));
        holdings.context_ended(ended(5));
        if (!replaced_first)
            holdings.replaced(replaced(1000, 5, DEVICE_UNKNOWN));
        holdings.add(calls(KIND_ALLOC, 2, 2000, 5));
        holdings.apply_ended_contexts();
        CHECK(holdings.now().empty());
        CHECK(is(sum(holdings.drain_released()), 3, 3000));
    }
}

TEST_CASE("stale entries and ended contexts are kept until a sweep, or until the process is forgotten")
{
    Holdings holdings;
    holdings.add(calls(KIND_ALLOC, 3, 3000, 5));
    holdings.context_ended(ended(5));
    holdings.apply_ended_contexts();
    CHECK(holdings.now().empty());
    CHECK(holdings.holds(process));
    holdings.mark_swept();
    CHECK(!holdings.holds(process));
    CHECK(holdings.sweepable_entries() == 0);
    CHECK(holdings.ended(5)); // a free may be in flight
    holdings.mark_swept();
    CHECK(!holdings.ended(5));
    holdings.add(calls(KIND_ALLOC, 3, 3000, 6));
    holdings.context_ended(ended(6));
    holdings.apply_ended_contexts();
    holdings.forget({process});
    CHECK(!holdings.holds(process));
    CHECK(!holdings.ended(6));
    CHECK(holdings.sweepable_entries() == 0);
    CHECK(is(sum(holdings.drain_released()), 0, 0));
}

TEST_CASE("forget() drops the memory that a process holds")
{
    Holdings holdings;
    holdings.add(calls(KIND_ALLOC, 1, 1000));
    CHECK(holdings.holds(process));
    holdings.forget({image{100, 8}});
    CHECK(holdings.holds(process));
    holdings.forget({process});
    CHECK(!holdings.holds(process));
}

TEST_CASE("every kind has a name, and kinds that can have equal handles are in different spaces")
{
    std::set<std::string_view> names;
    for (uint8_t what = 0; what < HOLDINGS; what++)
        names.insert(holding_name(what));
    CHECK(names.size() == HOLDINGS);
    CHECK(holding_name(HOLDINGS) == "unknown");
    std::set<int> spaces;
    for (holding what : {HOLDING_DEVICE, HOLDING_ARRAY, HOLDING_RESERVED, HOLDING_EXTERNAL, HOLDING_POOL_OBJECT})
        spaces.insert(space_of(what));
    CHECK(spaces.size() == 5);
    // Memory that cuMemFree() accepts is in one space, however it was allocated.
    for (holding what :
         {HOLDING_POOL, HOLDING_MANAGED, HOLDING_IMPORTED, HOLDING_GRAPH, HOLDING_MAPPED, HOLDING_PINNED})
        CHECK(space_of(what) == SPACE_ADDRESS);
    for (uint8_t what = 0; what < HOLDINGS; what++)
        CHECK((!is_device_memory(what) || is_memory(what)));
}
