// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/rules.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>

using namespace gpusnoop;

namespace {

TimeParts parts(uint32_t first, uint64_t ns, uint32_t second = TIME_CPU, uint64_t more = 0)
{
    TimeParts of{};
    of[first] += ns;
    of[second] += more;
    return of;
}

period did(const TimeParts& parts, uint32_t woken_by = 0, const char* comm = "")
{
    period period{};
    std::ranges::copy(parts, std::begin(period.ns));
    period.waker.tid = period.waker.pid = woken_by;
    strncpy(period.waker.comm, comm, sizeof(period.waker.comm) - 1);
    period.waker.blocked_ns = woken_by ? 50 : 0;
    period.waker.by = woken_by ? WOKEN_BY_THREAD : WOKEN_BY_UNKNOWN;
    return period;
}

period ended_by(woken_by by, const TimeParts& parts)
{
    period period = did(parts);
    period.waker.by = by;
    period.waker.blocked_ns = 50;
    return period;
}

gap_record gap_of(uint32_t tid, const period& gap, std::initializer_list<period> wakers)
{
    gap_record record{};
    record.tid = tid;
    record.gap = gap;
    record.known = static_cast<uint32_t>(wakers.size());
    std::ranges::copy(wakers, std::begin(record.wakers));
    record.running = 9;
    record.cpus = 2;
    return record;
}

} // namespace

TEST_CASE("each part of a thread's time has a rule")
{
    for (uint32_t part = 0; part < TIME_PARTS; part++) {
        INFO(part);
        CHECK(!gap_rule(part).name.empty());
        CHECK(!gap_rule(part).next.empty());
        CHECK(gap_words({parts(part, 60, part ? 0 : 1, 40), {}, {}}).find("60%") != std::string::npos);
    }
}

TEST_CASE("a thread that waits for the GPU is held up by nothing")
{
    CHECK(gap_words({parts(TIME_WAIT, 90, TIME_CPU, 10), {}, {}}) ==
          "is held up by nothing: the GPU is busy, it waits for that 90% of its time");
}

TEST_CASE("a wait for the GPU after a collective may be for other ranks")
{
    GapSigns signs{.parts = parts(TIME_WAIT, 90, TIME_CPU, 10), .cause = {}, .load = {}};
    CHECK(gap_next(signs) == gap_rule(TIME_WAIT).next);
    signs.collective = "AllReduce";
    CHECK(gap_words(signs) ==
          "waits for the GPU 90% of its time, and calls NCCL's AllReduce: other ranks may hold it up");
    CHECK(gap_next(signs) == "ncclwait --by rank 5");
    signs.parts = parts(TIME_LOCK, 90);
    CHECK(gap_words(signs) == "waits for a lock 100% of its time");
}

TEST_CASE("a thread that is stopped now says so first")
{
    const GapSigns signs{
        .parts = parts(TIME_STOPPED, 60, TIME_CPU, 40), .cause = {}, .load = {}, .suspension = "stopped by a signal"};
    CHECK(gap_words(signs) == "is stopped by a signal now; in all it is stopped or frozen 60% of its time");
}

TEST_CASE("who is waited for in the end, and what that one waits for")
{
    GapCauses causes;
    const period gap = did(parts(TIME_PIPE, 100), 11, "feeder");
    causes.add(gap_of(7, gap, {did(parts(TIME_LOCK, 90), 21, "worker"), did(parts(TIME_RUNQ, 71, TIME_CPU, 29))}), {});
    causes.add(gap_of(7, did(parts(TIME_PIPE, 100), 12, "feeder"),
                      {did(parts(TIME_LOCK, 90), 22, "worker"), did(parts(TIME_RUNQ, 71, TIME_CPU, 29))}),
               {});
    CHECK(
        gap_words({parts(TIME_PIPE, 96, TIME_CPU, 4), causes.worst(7), causes.load(7)}) ==
        "waits in a pipe 96% of its time, in the end for worker 21 and 1 more, which wait for a CPU 71% of that time: "
        "9 threads run or could run on 2 CPUs");
    CHECK(!causes.worst(8));
}

TEST_CASE("a waker of which nothing is known yet is named")
{
    GapCauses causes;
    causes.add(gap_of(7, did(parts(TIME_PIPE, 100), 11, "feeder"), {}), {});
    CHECK(gap_words({parts(TIME_PIPE, 100), causes.worst(7), {}}) == "waits in a pipe 100% of its time, for feeder 11");
}

TEST_CASE("a wait that no thread ended names none")
{
    GapCauses causes;
    const auto words = [&](uint32_t tid, uint32_t part = TIME_LOCK) {
        return gap_words({parts(part, 100), causes.worst(tid), {}});
    };
    causes.add(gap_of(7, ended_by(WOKEN_BY_TIMEOUT, parts(TIME_LOCK, 100)), {}), {});
    causes.add(gap_of(7, ended_by(WOKEN_BY_TIMEOUT, parts(TIME_LOCK, 100)), {}), {});
    causes.add(gap_of(7, did(parts(TIME_LOCK, 100), 11, "dd"), {}), {});
    CHECK(words(7) == "waits for a lock 100% of its time, until its own timeout");
    causes.add(gap_of(8, ended_by(WOKEN_BY_SIGNAL, parts(TIME_LOCK, 100)), {}), {});
    CHECK(words(8) == "waits for a lock 100% of its time, until a signal (timer or I/O)");
    causes.add(gap_of(9, ended_by(WOKEN_BY_INTERRUPT, parts(TIME_SOCKET, 100)), {}), {});
    CHECK(words(9, TIME_SOCKET) ==
          "waits in a socket 100% of its time, until an interrupt (network, timer or other device)");
    CHECK(words(9, TIME_SLEEP) == "sleeps 100% of its time");
    causes.add(gap_of(10, did(parts(TIME_LOCK, 100)), {}), {});
    CHECK(words(10) == "waits for a lock 100% of its time");
}

TEST_CASE("what ends the waits of a waker")
{
    GapCauses causes;
    for (const uint32_t pid : {11, 12}) {
        causes.add(
            gap_of(7, did(parts(TIME_PIPE, 100), pid, "feeder"), {ended_by(WOKEN_BY_TIMEOUT, parts(TIME_POLL, 90))}),
            {});
        CHECK(gap_words({parts(TIME_PIPE, 100), causes.worst(7), {}}) ==
              (pid == 11
                   ? "waits in a pipe 100% of its time, for feeder 11, which waits in poll 100% of that time, "
                     "until its own timeout"
                   : "waits in a pipe 100% of its time, for feeder 11 and 1 more, which wait in poll 100% of that "
                     "time, until their own timeouts"));
    }
}

TEST_CASE("of a chain whose end is not known, the last one known is told")
{
    GapCauses causes;
    causes.add(gap_of(7, did(parts(TIME_PIPE, 100), 11, "feeder"), {did(parts(TIME_LOCK, 90), 21, "worker")}), {});
    CHECK(gap_words({parts(TIME_PIPE, 100), causes.worst(7), {}}) ==
          "waits in a pipe 100% of its time, for feeder 11, which waits for a lock 100% of that time");
}

TEST_CASE("which files are waited for, by the thread or by whom it waits for")
{
    GapCauses causes;
    causes.add(gap_of(7, did(parts(TIME_DISK, 100)), {}), {"data/a.tar"});
    CHECK(gap_words({parts(TIME_DISK, 100), {}, {}, causes.files(7)}) ==
          "waits for files 100% of its time, most of it for data/a.tar");
    CHECK(gap_words({parts(TIME_SLEEP, 100), {}, {}, causes.files(7)}) == "sleeps 100% of its time");
    CHECK(causes.files(8).empty());
    for (const char* file : {"", "data/b.jpg", "other/c", "data/b.jpg", "data/d.jpg"}) {
        period reads = did(parts(TIME_DISK, 90));
        reads.waker.blocked_ns = 40;
        causes.add(gap_of(9, did(parts(TIME_PIPE, 100), 11, "worker"), {reads}), {"", file});
    }
    CHECK(gap_words({parts(TIME_PIPE, 100), causes.worst(9), {}, causes.files(9)}) ==
          "waits in a pipe 100% of its time, for worker 11, which waits for files 100% of that time, most of it for "
          "data/b.jpg and 1 more");
}
