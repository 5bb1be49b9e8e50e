// SPDX-License-Identifier: Apache-2.0
#include "rows/thread_times.hpp"

#include "base/fd.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <numeric>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

constexpr uint64_t begin = 1'000'000;

// Simulated BPF side with one thread. Its table is a memfd, and there is no queue of free slots.
class Thread {
public:
    Thread() : fd_(memfd_create("thread_times", MFD_CLOEXEC))
    {
        REQUIRE(ftruncate(fd_.get(), sizeof(thread_time) * PLACES_MAX) == 0);
        table_.emplace(fd_.get(), PLACES_MAX);
        times_.emplace(fd_.get(), -1, taken_);
        first_call();
    }

    void first_call()
    {
        volatile thread_time& time = (*table_)[0];
        time.tid = 1;
        time.begin_ns = begin;
        taken_ = 1;
    }

    // Changes the thread's state as the BPF side does: adds the time until `until` to the old state.
    void change_state(uint64_t until, uint64_t to, uint64_t queued = 0, uint64_t throttled = 0) const
    {
        volatile thread_time& time = (*table_)[0];
        const uint64_t before = time.now, elapsed = until - (before >> TIME_SINCE_SHIFT);
        time.now = until << TIME_SINCE_SHIFT | to;
        const uint32_t part = time_part_of(before);
        if (is_queued(part))
            queued = elapsed;
        add(time_part(part), elapsed - queued);
        add(TIME_RUNQ, queued - throttled);
        add(TIME_THROTTLED, throttled);
    }

    void add(time_part part, uint64_t ns) const
    {
        volatile auto& sum = (*table_)[0].ns[part];
        sum = sum + ns;
    }

    // Drains the table, and returns the thread's sums.
    TimeSums sums(uint64_t now)
    {
        const std::vector<ThreadTime> times = drain(now);
        REQUIRE(times.size() == 1);
        const TimeSums& drained = times[0].sums;
        CHECK(std::accumulate(drained.ns.begin(), drained.ns.end(), uint64_t{0}) == drained.wall_ns);
        return drained;
    }
    size_t count(uint64_t now) { return drain(now).size(); }

private:
    std::vector<ThreadTime> drain(uint64_t now)
    {
        const std::vector<ThreadTime> times = times_->drain(begin + now);
        times_->forget_ended(times);
        return times;
    }

    Fd fd_;
    __u32 taken_ = 0;
    std::optional<SharedArray<thread_time>> table_;
    std::optional<ThreadTimes> times_;
};

constexpr uint64_t in(time_part call, time_part off = TIME_CPU)
{
    return uint64_t{call} << TIME_CALL_SHIFT | off;
}

} // namespace

TEST_CASE("a report includes the time in the current state")
{
    Thread thread;
    thread.change_state(100, in(TIME_LAUNCH));
    thread.change_state(300, TIME_CPU);
    thread.change_state(350, TIME_PIPE);
    TimeSums sums = thread.sums(1000);
    CHECK(sums.wall_ns == 1000);
    CHECK(sums.ns[TIME_CPU] == 150);
    CHECK(sums.ns[TIME_LAUNCH] == 200);
    CHECK(sums.ns[TIME_PIPE] == 650);
    thread.change_state(1200, TIME_CPU);
    sums = thread.sums(2000);
    CHECK(sums.wall_ns == 1000);
    CHECK(sums.ns[TIME_PIPE] == 200);
    CHECK(sums.ns[TIME_CPU] == 800);
}

TEST_CASE("all time within a call counts for the call, except waits for a CPU")
{
    Thread thread;
    thread.change_state(0, in(TIME_WAIT));
    thread.change_state(100, in(TIME_WAIT, TIME_LOCK));
    thread.change_state(530, in(TIME_WAIT), 30);
    const TimeSums sums = thread.sums(600);
    CHECK(sums.ns[TIME_WAIT] == 570);
    CHECK(sums.ns[TIME_RUNQ] == 30);
    CHECK(sums.ns[TIME_LOCK] == 0);
}

TEST_CASE("a later report corrects a wait that was reported as the wrong kind")
{
    Thread thread;
    const auto looks_like = GENERATE(TIME_RUNQ, TIME_THROTTLED, TIME_PIPE);
    const uint64_t queued = looks_like == TIME_PIPE ? GENERATE(0, 40, 60, 200) : 200;
    const uint64_t throttled = queued * GENERATE(0, 1, 2) / 2;
    thread.change_state(0, looks_like);
    CHECK(thread.sums(150).ns[looks_like] == 150);
    thread.change_state(200, TIME_CPU, queued, throttled);
    const TimeSums later = thread.sums(300);
    CHECK(later.ns[TIME_RUNQ] + later.ns[TIME_THROTTLED] + later.ns[TIME_PIPE] == 50);
    CHECK(later.ns[TIME_PIPE] == (queued >= 50 || looks_like != TIME_PIPE ? 0 : 50 - queued));
    CHECK(later.ns[TIME_CPU] == 100);
    CHECK(later.wall_ns == 150);
}

TEST_CASE("a later report corrects CPU time that was reported as a wait")
{
    Thread thread;
    thread.change_state(100, TIME_PIPE);
    CHECK(thread.sums(400).ns[TIME_PIPE] == 300);
    thread.change_state(150, TIME_CPU, 20);
    const TimeSums later = thread.sums(500);
    CHECK(later.wall_ns == 100);
    CHECK(later.ns[TIME_PIPE] == 0);
    CHECK(later.ns[TIME_RUNQ] == 0);
    CHECK(later.ns[TIME_CPU] == 100);
}

TEST_CASE("an ended thread is reported once, and its slot is freed")
{
    Thread thread;
    thread.change_state(700, TIME_ENDED);
    CHECK(thread.sums(1000).wall_ns == 700);
    CHECK(thread.count(2000) == 0);
    thread.first_call();
    CHECK(thread.sums(500).wall_ns == 500);
}

TEST_CASE("a thread that is being updated during a report is included in the next report")
{
    Thread thread;
    thread.change_state(100, TIME_PIPE);
    thread.add(TIME_CPU, uint64_t{0} - 1);
    CHECK(thread.count(200) == 0);
    thread.add(TIME_CPU, 1);
    CHECK(thread.sums(300).wall_ns == 300);
}

TEST_CASE("if a thread changes its state after the report began, the report includes the time up to the change")
{
    Thread thread;
    thread.change_state(500, TIME_SLEEP);
    CHECK(thread.sums(400).wall_ns == 500);
    CHECK(thread.sums(600).wall_ns == 100);
}
