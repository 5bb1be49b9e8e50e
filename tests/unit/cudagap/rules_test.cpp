// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/rules.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <functional>
#include <map>

using namespace gpusnoop;

// Cases set only the fields that matter.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

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

struct CircumstanceCase {
    std::string_view rule;
    std::string words;
    Circumstances around;                     // on a machine with 8 CPUs
    std::function<void(Circumstances&)> undo; // makes the rule no longer apply
};

Circumstances stalled(size_t pressure, double percent, std::optional<uint64_t> machine_wide = {})
{
    Circumstances around;
    around.stalled_percent.at(pressure) = percent;
    around.machine_wide = machine_wide;
    return around;
}

const CircumstanceCase circumstance_cases[] = {
    {"quota",
     "its cgroup is limited to 0.2 CPUs: throttled 39 times, for 3.1 s (summed over CPUs) in 4.0 s",
     {.quota_cpus = 0.2, .throttles = 39, .throttled_ns = 3'120'000'000},
     [](auto& a) { a.throttled_ns = 100'000'000; }},
    {"CPU pressure", "CPU pressure in its cgroup: 45% (PSI some)", stalled(PRESSURE_CPU, 44.6),
     [](auto& a) { a.stalled_percent[PRESSURE_CPU] = 9; }},
    {"I/O pressure", "I/O pressure on the machine: 12% (PSI some)", stalled(PRESSURE_IO, 12, 1),
     [](auto& a) { a.stalled_percent[PRESSURE_IO] = {}; }},
    {"memory pressure", "memory pressure in its cgroup: 80% (PSI some)", stalled(PRESSURE_MEMORY, 80),
     [](auto& a) { a.stalled_percent[PRESSURE_MEMORY] = 0; }},
    {"affinity",
     "restricted to 1 of 8 CPUs, with 9 threads",
     {.threads = 9, .allowed_cpus = 1},
     [](auto& a) { a.allowed_cpus = 8; }},
    {"nodes",
     "its threads run on NUMA node 1, but the GPUs are on node 0, 2",
     {.nodes = {1}, .gpu_nodes = {0, 2}},
     [](auto& a) { a.nodes.insert(0); }},
    {"faults",
     "120 major page faults/s (reads from disk)",
     {.major_faults = 480},
     [](auto& a) { a.major_faults = 39; }},
    {"swap",
     "1.2 GiB of its memory is swapped out",
     {.swapped_bytes = 1'288'490'189},
     [](auto& a) { a.swapped_bytes = 4096; }},
};

struct PeerCase {
    Peer peer;
    std::string words;
    void (*undo)(Peer&); // makes the rule no longer apply
};

const std::map<std::string_view, PeerCase> peer_cases = {
    {"retransmitted",
     {{.address = "10.0.0.2", .port = 9000, .rtts_us = {200}, .segments = 340, .retransmits = 12},
      "3.5% of TCP segments to 10.0.0.2:9000 were retransmitted (12 of 340)",
      [](Peer& peer) { peer.retransmits = 1; }}},
    {"out of order",
     {{.address = "10.0.0.3", .arrived = 1000, .out_of_order = 10},
      "1.0% of TCP segments from 10.0.0.3 arrived out of order (10 of 1000)",
      [](Peer& peer) { peer.arrived = 3000; }}},
    {"far away",
     {{.address = "fd00::2", .port = 80, .rtts_us = {80'000, 41'200, 41'000}},
      "the round trip to [fd00::2]:80 takes 41.2 ms (p95 of 3 connections: 80.0 ms)",
      [](Peer& peer) {
          peer.rtts_us = {80'000, 4000, 100};
      }}},
};

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

TEST_CASE("a thread that waits for the GPU is not held up, but after a collective it may wait for other ranks")
{
    GapSigns signs{.parts = parts(TIME_WAIT, 90, TIME_CPU, 10), .cause = {}, .load = {}};
    CHECK(gap_words(signs) == "not held up: spends 90% of its time waiting for the GPU");
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
    causes.add(gap_of(6, did(parts(TIME_PIPE, 100), 11, "feeder"), {}), {});
    CHECK(gap_words({parts(TIME_PIPE, 100), causes.worst(6), {}}) ==
          "blocked on a pipe 100% of the time, waiting for feeder 11");
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

TEST_CASE("each circumstance rule applies only above its threshold")
{
    Circumstances nothing{.covered_ns = 4'000'000'000, .cpus = 8};
    CHECK(circumstance_words(nothing).empty());
    CHECK(circumstance_words({}).empty());
    CHECK(circumstance_rules().size() == std::size(circumstance_cases));
    for (CircumstanceCase of : circumstance_cases) {
        INFO(of.rule);
        const auto rule = std::ranges::find(circumstance_rules(), of.rule, &CircumstanceRule::name);
        REQUIRE(rule != circumstance_rules().end());
        of.around.covered_ns = nothing.covered_ns;
        of.around.cpus = nothing.cpus;
        CHECK(rule->check(of.around) == of.words);
        CHECK(circumstance_words(of.around) == std::vector{of.words});
        of.undo(of.around);
        CHECK(!rule->check(of.around));
    }
}

TEST_CASE("each peer rule applies only to a bad peer of a thread that waits for sockets")
{
    TimeParts parts{};
    parts[TIME_CPU] = 800;
    parts[TIME_SOCKET] = 50;
    parts[TIME_POLL] = 150;
    CHECK(peer_words(parts, {}).empty());
    CHECK(peer_words(parts, {Peer{.address = "10.0.0.1"}}).empty());
    for (const PeerRule& rule : peer_rules()) {
        INFO(rule.name);
        REQUIRE(peer_cases.contains(rule.name));
        PeerCase of = peer_cases.at(rule.name);
        const Peer good{.address = "10.0.0.1", .rtts_us = {20}, .segments = 9, .retransmits = 0};
        CHECK(peer_words(parts, {good, of.peer}) == std::vector{of.words});
        CHECK(peer_words(parts, {of.peer, good}) == std::vector{of.words});
        TimeParts others{};
        others[TIME_PIPE] = 100;
        CHECK(peer_words(others, {of.peer}).empty());
        CHECK(peer_words({}, {of.peer}).empty());
        of.undo(of.peer);
        CHECK(!rule.severity(of.peer));
    }
    CHECK(peer_rules().size() == peer_cases.size());
}
