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

TEST_CASE("each category of a thread's time has a rule")
{
    for (uint32_t part = 0; part < TIME_PARTS; part++) {
        INFO(part);
        CHECK(!gap_rule(part).name.empty());
        CHECK(!gap_rule(part).next.empty());
        CHECK(gap_words({parts(part, 60, part ? 0 : 1, 40), {}, {}}).find("60%") != std::string::npos);
    }
}

TEST_CASE("a thread that waits for the GPU is not held up")
{
    CHECK(gap_words({parts(TIME_WAIT, 90, TIME_CPU, 10), {}, {}}) ==
          "not held up: spends 90% of its time waiting for the GPU");
}

TEST_CASE("a wait for the GPU after a collective may be a wait for other ranks")
{
    GapSigns signs{.parts = parts(TIME_WAIT, 90, TIME_CPU, 10), .cause = {}, .load = {}};
    CHECK(gap_next(signs) == gap_rule(TIME_WAIT).next);
    signs.collective = "AllReduce";
    CHECK(gap_words(signs) ==
          "waiting for the GPU 90% of the time; calls NCCL's AllReduce, so another rank may be the straggler");
    CHECK(gap_next(signs) == "ncclwait --by rank 5");
    signs.parts = parts(TIME_LOCK, 90);
    CHECK(gap_words(signs) == "blocked on a lock 100% of the time");
}

TEST_CASE("the sentence of a stopped thread begins with the reason")
{
    const GapSigns signs{
        .parts = parts(TIME_STOPPED, 60, TIME_CPU, 40), .cause = {}, .load = {}, .suspension = "stopped by a signal"};
    CHECK(gap_words(signs) == "stopped by a signal now; over the whole time: stopped or frozen 60% of the time");
}

TEST_CASE("a chain of waits names its last threads and what they wait for")
{
    GapCauses causes;
    const period gap = did(parts(TIME_PIPE, 100), 11, "feeder");
    causes.add(gap_of(7, gap, {did(parts(TIME_LOCK, 90), 21, "worker"), did(parts(TIME_RUNQ, 71, TIME_CPU, 29))}), {});
    causes.add(gap_of(7, did(parts(TIME_PIPE, 100), 12, "feeder"),
                      {did(parts(TIME_LOCK, 90), 22, "worker"), did(parts(TIME_RUNQ, 71, TIME_CPU, 29))}),
               {});
    CHECK(gap_words({parts(TIME_PIPE, 96, TIME_CPU, 4), causes.worst(7), causes.load(7)}) ==
          "blocked on a pipe 96% of the time, ultimately waiting for worker 21 and 1 more, which are waiting for a CPU "
          "71% of that time: 9 runnable threads on 2 CPUs");
    CHECK(!causes.worst(8));
}

TEST_CASE("a waker is named before its activity is known")
{
    GapCauses causes;
    causes.add(gap_of(7, did(parts(TIME_PIPE, 100), 11, "feeder"), {}), {});
    CHECK(gap_words({parts(TIME_PIPE, 100), causes.worst(7), {}}) ==
          "blocked on a pipe 100% of the time, waiting for feeder 11");
}

TEST_CASE("if no thread ended a wait, the sentence names the event that ended it")
{
    GapCauses causes;
    const auto words = [&](uint32_t tid, uint32_t part = TIME_LOCK) {
        return gap_words({parts(part, 100), causes.worst(tid), {}});
    };
    causes.add(gap_of(7, ended_by(WOKEN_BY_TIMEOUT, parts(TIME_LOCK, 100)), {}), {});
    causes.add(gap_of(7, ended_by(WOKEN_BY_TIMEOUT, parts(TIME_LOCK, 100)), {}), {});
    causes.add(gap_of(7, did(parts(TIME_LOCK, 100), 11, "dd"), {}), {});
    CHECK(words(7) == "blocked on a lock 100% of the time, until it times out");
    causes.add(gap_of(8, ended_by(WOKEN_BY_SIGNAL, parts(TIME_LOCK, 100)), {}), {});
    CHECK(words(8) == "blocked on a lock 100% of the time, until a signal arrives (timer or I/O)");
    causes.add(gap_of(9, ended_by(WOKEN_BY_INTERRUPT, parts(TIME_SOCKET, 100)), {}), {});
    CHECK(words(9, TIME_SOCKET) ==
          "blocked on a socket 100% of the time, until an interrupt (network, timer or other device)");
    CHECK(words(9, TIME_SLEEP) == "sleeping 100% of the time");
    causes.add(gap_of(10, did(parts(TIME_LOCK, 100)), {}), {});
    CHECK(words(10) == "blocked on a lock 100% of the time");
}

TEST_CASE("the sentence names the event that ends a waker's own waits")
{
    GapCauses causes;
    for (const uint32_t pid : {11, 12}) {
        causes.add(
            gap_of(7, did(parts(TIME_PIPE, 100), pid, "feeder"), {ended_by(WOKEN_BY_TIMEOUT, parts(TIME_POLL, 90))}),
            {});
        CHECK(gap_words({parts(TIME_PIPE, 100), causes.worst(7), {}}) ==
              (pid == 11
                   ? "blocked on a pipe 100% of the time, waiting for feeder 11, which is blocked in poll 100% of that "
                     "time, until it times out"
                   : "blocked on a pipe 100% of the time, waiting for feeder 11 and 1 more, which are blocked in poll "
                     "100% of that time, until they time out"));
    }
}

TEST_CASE("a chain of waits ends at the last thread whose activity is known")
{
    GapCauses causes;
    causes.add(gap_of(7, did(parts(TIME_PIPE, 100), 11, "feeder"), {did(parts(TIME_LOCK, 90), 21, "worker")}), {});
    CHECK(gap_words({parts(TIME_PIPE, 100), causes.worst(7), {}}) ==
          "blocked on a pipe 100% of the time, waiting for feeder 11, which is blocked on a lock 100% of that time");
}

TEST_CASE("the sentence names the files that the thread or its waker waits for")
{
    GapCauses causes;
    causes.add(gap_of(7, did(parts(TIME_DISK, 100)), {}), {"data/a.tar"});
    CHECK(gap_words({parts(TIME_DISK, 100), {}, {}, causes.files(7)}) ==
          "waiting for files 100% of the time, mostly data/a.tar");
    CHECK(gap_words({parts(TIME_SLEEP, 100), {}, {}, causes.files(7)}) == "sleeping 100% of the time");
    CHECK(causes.files(8).empty());
    for (const char* file : {"", "data/b.jpg", "other/c", "data/b.jpg", "data/d.jpg"}) {
        period reads = did(parts(TIME_DISK, 90));
        reads.waker.blocked_ns = 40;
        causes.add(gap_of(9, did(parts(TIME_PIPE, 100), 11, "worker"), {reads}), {"", file});
    }
    CHECK(gap_words({parts(TIME_PIPE, 100), causes.worst(9), {}, causes.files(9)}) ==
          "blocked on a pipe 100% of the time, waiting for worker 11, which is waiting for files 100% of that time, "
          "mostly data/b.jpg and 1 more");
}
