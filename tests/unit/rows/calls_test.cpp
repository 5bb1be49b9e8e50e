// SPDX-License-Identifier: Apache-2.0
#include "rows/calls.hpp"

#include "bpf/shared/probe.h"
#include "rows/call_sums.hpp"
#include "tests/unit/base/sanitized.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

using namespace gpusnoop;

namespace {

const image process{100, 7};

call_key kernel(uint64_t number, uint32_t tid = 0, const image& who = process)
{
    call_key key{};
    key.image = who;
    key.kind = KIND_LAUNCH;
    key.duration = BUCKET_NONE;
    key.stack = -1;
    key.subject = number;
    key.tid = tid;
    return key;
}

// Simulated BPF side: programs on many CPUs, which first look up a row and later add to it.
class Machine : public CallRows {
public:
    Machine(size_t rows, size_t cpus) : capacity_(rows), cpus_(cpus) {}

    // Returns false if the table is full.
    bool call(call_key key, size_t cpu, uint64_t duration_ns = 0)
    {
        call_stats* stats = look_up(key, cpu);
        if (!stats)
            return false;
        stats->v[CALL_COUNT]++;
        stats->v[CALL_TOTAL_NS] += duration_ns;
        stats->v[CALL_MAX_NS] = std::max<uint64_t>(stats->v[CALL_MAX_NS], duration_ns);
        return true;
    }
    // Called right after the switch to the other generation.
    std::function<void()> meanwhile = [] {};
    // Starts a call whose program has looked up its row, and is preempted before it adds to the row.
    void begin(const call_key& key, size_t cpu) { open_.push_back(look_up(key, cpu)); }
    call_stats& row(const call_key& key, size_t cpu) { return *look_up(key, cpu); }

    size_t size() const { return rows_.size(); }
    size_t switches = 0;
    bool refuses = false;

    size_t capacity() const override { return capacity_; }
    void for_each(const Each& each) override
    {
        for (const auto& [key, values] : rows_)
            each(key, values);
    }
    size_t taken() const override { return rows_.size(); }
    void erase(std::span<const call_key> keys) override
    {
        for (const call_key& key : keys)
            rows_.erase(key);
    }
    bool switch_generation(uint8_t generation) override
    {
        switches++;
        generation_ = generation;
        if (refuses)
            return false;
        for (call_stats* stats : std::exchange(open_, {})) // preempted programs finish before the switch returns
            stats->v[CALL_COUNT]++;
        meanwhile();
        return true;
    }

private:
    call_stats* look_up(call_key key, size_t cpu)
    {
        key.flags |= generation_;
        auto row = rows_.find(key);
        if (row == rows_.end() && rows_.size() == capacity_)
            return nullptr;
        if (row == rows_.end())
            row = rows_.emplace(key, std::vector<call_stats>(cpus_)).first;
        return &row->second[cpu];
    }

    size_t capacity_;
    size_t cpus_;
    uint8_t generation_ = 0;
    ByCallKey<std::vector<call_stats>> rows_;
    std::vector<call_stats*> open_;
};

struct Table {
    Table(size_t rows, size_t cpus, bool own_maxima = false)
    {
        auto made = std::make_unique<Machine>(rows, cpus);
        machine = made.get();
        table.emplace(std::move(made), own_maxima);
    }
    // Makes a call of each of `kernels` kernels.
    void fill(uint64_t kernels) const
    {
        for (uint64_t number = 0; number < kernels; number++)
            REQUIRE(machine->call(kernel(number), 0));
    }
    // Adds the drained calls to `counted`, and returns the longest duration.
    uint64_t drain()
    {
        uint64_t max_ns = 0;
        for (const CallDelta& delta : table->drain()) {
            CHECK((delta.key.flags & CALL_GENERATION) == 0);
            counted[delta.key.subject] += delta[CALL_COUNT];
            max_ns = std::max(max_ns, delta[CALL_MAX_NS]);
        }
        return max_ns;
    }

    Machine* machine;
    std::optional<CallTable> table;
    std::map<uint64_t, uint64_t> counted;
};

} // namespace

TEST_CASE("a week of new kernels on 256 CPUs is counted exactly in a table that they fill within minutes", "[long]")
{
    constexpr size_t rows = 512, cpus = 256, days = sanitized ? 1 : 7, minutes = days * 24 * 60;
    Table t(rows, cpus);
    std::map<uint64_t, uint64_t> made;
    std::minstd_rand random(1);
    uint64_t next = 100;
    for (size_t minute = 0; minute < minutes; minute++) {
        for (int i = 0; i < 40; i++) {
            const uint64_t number = i < 20 ? random() % 20 : next++; // half of the calls are of 20 permanent kernels
            REQUIRE(t.machine->call(kernel(number), random() % cpus));
            made[number]++;
        }
        t.drain();
    }
    CHECK(made.size() > 20 * minutes);
    CHECK(t.machine->switches > 42 * days);
    CHECK(t.machine->size() < rows);
    CHECK(t.counted == made);
}

TEST_CASE("no call is lost if its program is preempted during the switch of generations")
{
    Table t(16, 4);
    t.fill(12);
    t.machine->begin(kernel(3), 1);
    t.drain();
    CHECK(t.machine->switches == 1);
    CHECK(t.machine->size() == 0);
    CHECK(t.counted[3] == 2);
    REQUIRE(t.machine->call(kernel(3), 2));
    t.drain();
    t.drain();
    CHECK(t.counted[3] == 3);
    CHECK(t.machine->switches == 1);
}

TEST_CASE("the maximum of an interval is that of the interval's own calls")
{
    Table t(16, 4, true);
    const auto call = [&](uint64_t duration_ns) { REQUIRE(t.machine->call(kernel(3), duration_ns % 4, duration_ns)); };
    call(1'300'001);
    call(1'300'002);
    CHECK(t.drain() == 1'300'002);
    call(1'100'003);
    t.machine->meanwhile = [&] { call(1'200'000); }; // a call during the switch counts in the next interval
    CHECK(t.drain() == 1'100'003);
    t.machine->meanwhile = [] {};
    call(1'150'000);
    CHECK(t.drain() == 1'200'000);
    CHECK(t.drain() == 0);
    CHECK(t.counted[3] == 5);
    CHECK(t.machine->size() == 0);
}

TEST_CASE("the last calls of an exited process are reported at once, not in the next interval")
{
    Table t(16, 4, true);
    REQUIRE(t.machine->call(kernel(3), 0, 5));
    t.machine->meanwhile = [&] { REQUIRE(t.machine->call(kernel(3), 0, 7)); };
    t.table->retire(process);
    CHECK(t.drain() == 7);
    CHECK(t.counted[3] == 2);
    CHECK(t.machine->size() == 0);
}

TEST_CASE("if the generation cannot be switched, a maximum is at most the interval's total duration")
{
    Table t(16, 4, true);
    t.machine->refuses = true;
    REQUIRE(t.machine->call(kernel(3), 0, 1300));
    CHECK(t.drain() == 1300);
    REQUIRE(t.machine->call(kernel(3), 0, 1100));
    t.drain(); // from now on, calls are in the row of the new generation
    REQUIRE(t.machine->call(kernel(3), 0, 1000));
    CHECK(t.drain() == 1000);
    CHECK(t.counted[3] == 3);
}

TEST_CASE("a table whose generation cannot be switched keeps its rows")
{
    Table t(16, 4);
    t.machine->refuses = true;
    t.fill(14);
    t.drain();
    t.drain();
    CHECK(t.machine->switches == 1);
    CHECK(t.machine->size() == 14);
    REQUIRE(t.machine->call(kernel(3), 0)); // counts in the new generation
    t.drain();
    CHECK(t.counted[3] == 2);
    CHECK(t.machine->size() == 15);
}

TEST_CASE("rows of an exited process are removed from both generations")
{
    Table t(16, 4);
    t.machine->refuses = true;
    t.fill(12);
    t.drain();
    REQUIRE(t.machine->call(kernel(1), 0));
    t.table->retire(process);
    t.drain();
    CHECK(t.machine->size() == 0);
    CHECK(t.counted[1] == 2);
}

TEST_CASE("spilled calls are counted like calls in the table")
{
    Table t(16, 1);
    call_event event{};
    event.key = kernel(3);
    event.key.kind = KIND_COPY;
    event.duration_ns = 40;
    event.copy.bytes = 10;
    event.copy.copies = 3;
    event.copy.sized = event.copy.begins = 1;
    t.table->add(event);
    event.duration_ns = 50;
    event.copy = {};
    event.copy.copies = 2;
    t.table->add(event);
    const std::vector<CallDelta> copies = t.table->drain();
    REQUIRE(copies.size() == 1);
    const call_stats& sums = copies[0].stats;
    CHECK(std::vector(std::begin(sums.v), std::end(sums.v)) == std::vector<__u64>{5, 90, 50, 0, 10, 3, 2, 4});
}

TEST_CASE("a row has the shape of the most recent launch, on whichever CPU")
{
    Table t(16, 2);
    for (const size_t cpu : {0, 1}) {
        call_stats& stats = t.machine->row(kernel(3), cpu);
        stats.v[CALL_COUNT] = 1;
        stats.v[CALL_LAST] = 10 - cpu;
        stats.v[LAUNCH_SHAPE] = 100 + cpu;
    }
    const std::vector<CallDelta> launches = t.table->drain();
    REQUIRE(launches.size() == 1);
    CHECK(launches[0][CALL_COUNT] == 2);
    CHECK(launches[0][CALL_LAST] == 10);
    CHECK(launches[0].shape().grid[0] == 100);
}

TEST_CASE("rows_for() keeps the table below 65 MiB for any number of CPUs")
{
    CHECK(rows_for(72, 8) == 16384);
    CHECK(rows_for(72, 224) == 4657);
    CHECK(rows_for(72, 256) == 4096);
    for (const size_t cpus : {1, 64, 192, 256})
        CHECK(rows_for(72, cpus) * (72 + 64 * cpus) < 65 << 20);
}

TEST_CASE("a report of more rows than the limit has the same sums")
{
    CallSums sums(100);
    const auto add = [&](const call_key& key) {
        CallDelta delta{.key = key, .stats = {{2, 10, key.subject}}};
        sums.add(delta);
        sums.add(delta);
    };
    for (uint64_t number = 0; number < 1000; number++)
        add(kernel(number, 5));
    uint64_t calls = 0, ns = 0, max_ns = 0;
    for (const CallDelta& row : sums.rows()) {
        calls += row[CALL_COUNT];
        ns += row[CALL_TOTAL_NS];
        max_ns = std::max(max_ns, row[CALL_MAX_NS]);
    }
    CHECK(sums.rows().size() == 101);
    CHECK(calls == 4000);
    CHECK(ns == 20000);
    CHECK(max_ns == 999);
    CHECK(sums.merged() == 3600);
    CHECK(sums.rows().back().key.image == process);
    CHECK(sums.rows().back().key.tid == 0);
    for (uint32_t pid = 1; pid < 1000; pid++)
        add(kernel(1, 0, {pid, 1}));
    CHECK(sums.rows().size() <= 201);
    sums.clear();
    CHECK(sums.rows().empty());
    CHECK(sums.merged() == 0);
}

TEST_CASE("if a process creates many rows, its rows are merged, but not those of other processes")
{
    CallSums sums(160);
    const auto add = [&](uint32_t pid, uint64_t first, uint64_t last) {
        for (uint64_t number = first; number <= last; number++)
            sums.add({.key = kernel(number, 0, {pid, 1}), .stats = {{1}}});
    };
    add(1, 1, 1000);
    add(2, 1, 50);
    add(1, 1001, 2000);
    add(3, 1, 50);
    std::map<uint32_t, uint64_t> calls, rows;
    for (const CallDelta& row : sums.rows()) {
        calls[row.key.image.pid] += row[CALL_COUNT];
        rows[row.key.image.pid]++;
    }
    CHECK(calls == std::map<uint32_t, uint64_t>{{1, 2000}, {2, 50}, {3, 50}});
    CHECK(rows == std::map<uint32_t, uint64_t>{{1, 1}, {2, 50}, {3, 50}});
    CHECK(sums.merged() == 2000);
}

TEST_CASE("merge() keeps the sums of processes")
{
    CallSums sums;
    for (uint32_t pid = 1; pid <= 10; pid++)
        for (uint64_t number = 0; number < 5; number++)
            sums.add({.key = kernel(number, 0, {pid, 1}), .stats = {{3}}});
    sums.merge({{1, 1}, {2, 1}});
    CHECK(sums.rows().size() == 41);
    CHECK(sums.merged() == 30);
    CHECK(sums.rows().front()[CALL_COUNT] == 30);
    CHECK(sums.rows().front().key.image.pid == 0);
}
