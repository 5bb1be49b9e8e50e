// SPDX-License-Identifier: Apache-2.0
#include "tools/cudasync/waits.hpp"

#include "base/clock.hpp"
#include "proc/process.hpp"
#include "tests/unit/base/sleeping_child.hpp"

#include <optional>
#include <sys/mman.h>

using namespace gpusnoop;

namespace {

constexpr uint64_t second = 1'000'000'000;

// A memory file in place of the BPF map of waits, without the queue of free slots.
class Table {
public:
    Table() : fd_(memfd_create("waiting", MFD_CLOEXEC))
    {
        REQUIRE(ftruncate(fd_.get(), sizeof(waiting) * PLACES_MAX) == 0);
        places_.emplace(fd_.get(), PLACES_MAX);
    }
    int fd() const { return fd_.get(); }
    volatile waiting& operator[](size_t i) const { return (*places_)[i]; }

    void waits(size_t place, pid_t pid, uint64_t since_ns)
    {
        volatile waiting& shared = (*places_)[place];
        shared.thread_start_ns = thread_start_time_ns(pid, pid);
        shared.now.key.image.pid = static_cast<uint32_t>(pid);
        shared.now.key.tid = static_cast<uint32_t>(pid);
        shared.now.key.stack = -1;
        shared.now.since_ns = since_ns;
    }

private:
    Fd fd_;
    std::optional<SharedArray<waiting>> places_;
};

struct Waits {
    Table table;
    __u64 reported_ns = 0;
    bool go_on = false;
    __u32 places_taken = 10;
    Waiting waiting{table.fd(), -1, {reported_ns, go_on, places_taken}};
    uint64_t now = clock_ns(CLOCK_MONOTONIC);

    std::vector<Waiting::Part> report(uint64_t ns)
    {
        waiting.end_interval(ns, 0);
        return waiting.drain(0);
    }
};

} // namespace

TEST_CASE("a wait whose thread ends is reported once, with the time until then")
{
    Waits waits;
    const SleepingChild child;
    const auto pid = static_cast<uint32_t>(child.pid());
    waits.table.waits(7, child.pid(), waits.now - 100 * second);
    CHECK(waits.waiting.drain(0).empty()); // no interval has ended
    auto parts = waits.report(waits.now - 10 * second);
    REQUIRE(parts.size() == 1);
    CHECK((parts[0].waiting && !parts[0].ended));
    waits.waiting.forget_ended();
    CHECK(waits.go_on);
    child.kill();
    waits.waiting.exited(pid, waits.now - 4 * second);
    SECTION("noticed by the report") {}
    SECTION("noticed before the report")
    {
        waits.waiting.forget_ended();
    }
    parts = waits.report(waits.now);
    REQUIRE(parts.size() == 1);
    CHECK((!parts[0].waiting && parts[0].ended));
    CHECK(parts[0].elapsed_ns == 96 * second);
    CHECK(parts[0].new_ns + 1 - 6 * second <= 2); // +-1 ns: end_interval() alternates the lowest bit of the time
    CHECK(parts[0].key.image.pid == pid);
    waits.waiting.forget_ended();
    CHECK(!waits.go_on);
    CHECK(waits.report(waits.now + second).empty());
}

TEST_CASE("without an exit event, a wait ends when the end of its thread is noticed")
{
    Waits waits;
    const SleepingChild child;
    waits.table.waits(0, child.pid(), waits.now - 30 * second); // an earlier start could lie before boot
    child.kill();
    waits.waiting.forget_ended();
    const auto parts = waits.report(clock_ns(CLOCK_MONOTONIC) + second);
    REQUIRE(parts.size() == 1);
    CHECK(parts[0].ended);
    CHECK(parts[0].elapsed_ns >= 30 * second);
    CHECK(parts[0].elapsed_ns < 130 * second);
    CHECK(parts[0].new_ns == parts[0].elapsed_ns);
}

TEST_CASE("exec ends earlier waits, although the main thread keeps its id")
{
    Waits waits;
    waits.table.waits(1, getpid(), waits.now - 50 * second);
    waits.waiting.executed(static_cast<uint32_t>(getpid()), waits.now - 20 * second);
    waits.table.waits(2, getpid(), waits.now - 10 * second); // a wait of the new program
    const auto parts = waits.report(waits.now);
    REQUIRE(parts.size() == 2);
    CHECK(parts[0].waiting);
    CHECK(parts[1].ended);
    CHECK(parts[1].elapsed_ns == 30 * second);
}

TEST_CASE("a wait of a running thread, or a wait that returned, does not count as ended")
{
    Waits waits;
    const SleepingChild child;
    waits.table.waits(3, getpid(), waits.now - 5 * second);
    waits.table.waits(4, child.pid(), 0);
    child.kill();
    waits.waiting.forget_ended();
    const auto parts = waits.report(waits.now);
    REQUIRE(parts.size() == 1);
    CHECK((parts[0].waiting && !parts[0].ended));
}

TEST_CASE("a wait counts from its start once it is longer than the minimum")
{
    Waits waits;
    waits.table.waits(3, getpid(), waits.now - 5 * second);
    waits.waiting.end_interval(waits.now, 0);
    CHECK(waits.waiting.drain(6 * second).empty());
    waits.waiting.end_interval(waits.now + 2 * second, 0);
    const auto parts = waits.waiting.drain(6 * second);
    REQUIRE(parts.size() == 1);
    CHECK(parts[0].new_ns == parts[0].elapsed_ns);
    CHECK(parts[0].elapsed_ns + 1 - 7 * second <= 2);
}
