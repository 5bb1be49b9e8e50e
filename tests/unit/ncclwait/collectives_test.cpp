// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/caller_cpu.hpp"
#include "tools/ncclwait/collective_verdicts.hpp"
#include "tools/ncclwait/collectives.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <random>

using namespace gpusnoop;

// Records set only the fields that matter.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace {

std::vector<Probe> nccl_probes()
{
    const probe_kind kinds[] = {KIND_COLLECTIVE, KIND_MESSAGE,    KIND_GROUP_BEGIN,
                                KIND_GROUP_END,  KIND_GROUP_DROP, KIND_COMM_DESTROY};
    return probes(Library::nccl, kinds);
}

// Simulated ranks of a job: passes records to Collectives, as the BPF programs would.
class Job {
public:
    explicit Job(bool lines = false) : lines_(lines) {}

    uint32_t rank(int number, int of, uint64_t hash = 7, bool made = true)
    {
        const uint32_t comm = ++comms_;
        collectives.learn({.number = comm,
                           .image = {.pid = 100 + comm, .serial = 1},
                           .identity = {.hash = hash, .rank = number, .ranks = of, .device = number},
                           .made = made});
        return comm;
    }
    void call(uint32_t comm, uint64_t ns, std::string_view symbol = "ncclAllReduce", uint64_t elements = 10,
              int result = 0)
    {
        const auto row = std::ranges::find(all_, symbol, &Probe::symbol) - all_.begin() + 1;
        const bool group = symbol.starts_with("ncclGroup");
        collectives.add({.row = static_cast<uint32_t>(row),
                         .pid = 100 + comm,
                         .tid = 100 + comm,
                         .comm = group ? 0 : comm,
                         .sequence = group ? 0 : ++sequences_[comm],
                         .result = result,
                         .data_type = 7,
                         .entry_ns = ns,
                         .duration_ns = 10,
                         .elements = elements,
                         .stack = -1});
    }
    void wait(uint32_t comm, uint64_t begin_ns, uint64_t end_ns)
    {
        collectives.waited({.pid = 100 + comm, .tid = 100 + comm, .begin_ns = begin_ns, .end_ns = end_ns});
    }
    void lose(uint32_t comm) { sequences_[comm]++; }
    std::map<unsigned, Collectives::Part> parts(bool last = true)
    {
        collectives.join(last);
        std::map<unsigned, Collectives::Part> by_rank;
        for (const Collectives::Part& part : collectives.drain()) {
            Collectives::Part& sum = by_rank.try_emplace(part.rank, part).first->second;
            if (sum.operation != part.operation)
                sum.sums.add(part.sums);
        }
        return by_rank;
    }

    // Per rank, the sums that are not 0: "RANK HOW/RANKS_HERE calls N errors N ...; ".
    std::string shown(bool last = true)
    {
        constexpr std::array how{"alone", "not_yet", "exactly", "aligned"};
        std::string text;
        for (const auto& [rank, part] : parts(last)) {
            text += fmt::format("{} {}/{}", rank, how.at(static_cast<size_t>(part.joined)), part.here);
            const CollectiveSums& sums = part.sums;
            for (const auto& [name, value] :
                 {std::pair("calls", sums.calls), std::pair("errors", sums.errors), std::pair("joined", sums.joined),
                  std::pair("unjoined", sums.unjoined), std::pair("wait", sums.wait_ns), std::pair("last", sums.last),
                  std::pair("late", sums.late_ns), std::pair("skews", sums.skews.total())})
                if (value)
                    text += fmt::format(" {} {}", name, value);
            text += "; ";
        }
        return text;
    }

private:
    std::vector<Probe> all_ = nccl_probes();
    uint32_t comms_ = 0;
    std::map<uint32_t, uint32_t> sequences_;
    bool lines_;

public:
    Collectives collectives{all_, {.lines = lines_}};
};

} // namespace

TEST_CASE("operations have the same names and sizes as in nccl-tests", "[collectives]")
{
    CHECK(operation_of("ncclAllReduceConfig") == "AllReduce");
    CHECK(operation_of("ncclBcast") == "Broadcast");
    CHECK(operation_of("ncclAllToAll") == "AlltoAll");
    CHECK(collective_bytes("AllReduce", 10, 7, 8) == 40);
    CHECK(collective_bytes("AllGather", 10, 9, 8) == 160);
    CHECK(collective_bytes("ReduceScatter", 10, 8, 2) == 160);
    CHECK(collective_bytes("Broadcast", 10, 10, 8) == 10);
    CHECK(collective_bytes("Broadcast", 10, 12, 8) == std::nullopt);
    CHECK(collective_bytes("AllGather", UINT64_MAX / 2, 7, 8) == std::nullopt);
}

TEST_CASE("a call is joined when all ranks have entered it", "[collectives]")
{
    Job job;
    const uint32_t a = job.rank(0, 3), b = job.rank(1, 3), c = job.rank(2, 3);
    job.call(a, 100);
    job.call(a, 200);
    job.call(b, 130);
    job.call(b, 210);
    CHECK(job.shown(false) == "0 exactly/3 calls 2; 1 exactly/3 calls 2; ");
    job.call(c, 190);
    CHECK(job.shown(false) == "0 exactly/3 joined 1 wait 90; 1 exactly/3 joined 1 wait 60; 2 exactly/3 calls 1 joined "
                              "1 last 1 late 60 skews 1; ");
    job.call(c, 150 + 55);
    CHECK(job.shown(false) == "0 exactly/3 joined 1 wait 10; 1 exactly/3 joined 1 last 1 late 5 skews 1; 2 exactly/3 "
                              "calls 1 joined 1 wait 5; ");
}

TEST_CASE("calls of ranks whose peers are missing stay unjoined, unless this machine has a single rank",
          "[collectives]")
{
    Job job;
    const uint32_t a = job.rank(0, 2), b = job.rank(1, 2);
    job.call(a, 100);
    job.call(a, 200);
    job.call(b, 101);
    CHECK(job.shown() ==
          "0 exactly/2 calls 2 joined 1 unjoined 1 wait 1; 1 exactly/2 calls 1 joined 1 last 1 late 1 skews 1; ");
    Job alone;
    alone.call(alone.rank(3, 8), 100);
    CHECK(alone.shown() == "3 alone/1 calls 1; ");
}

TEST_CASE("failed calls count as errors, and later calls of the ranks are still matched", "[collectives]")
{
    Job job;
    const uint32_t a = job.rank(0, 2), b = job.rank(1, 2);
    job.call(a, 90, "ncclAllReduce", 10, 4);
    job.call(a, 100, "ncclAllReduce", 10, 7);
    job.call(b, 120);
    CHECK(job.shown() ==
          "0 exactly/2 calls 1 errors 1 joined 1 wait 20; 1 exactly/2 calls 1 joined 1 last 1 late 20 skews 1; ");
    SECTION("all calls of a group that fails are errors")
    {
        job.call(a, 200, "ncclGroupStart");
        job.call(a, 201);
        job.call(a, 202, "ncclGroupStart");
        job.call(a, 203, "ncclSend");
        job.call(a, 204, "ncclGroupEnd");
        job.call(a, 205, "ncclGroupEnd", 0, 3);
        CHECK(job.shown() == "0 exactly/2 errors 2; ");
    }
    SECTION("a simulated group does not count")
    {
        job.call(a, 200, "ncclGroupStart");
        job.call(a, 201);
        job.call(a, 205, "ncclGroupSimulateEnd");
        CHECK(job.shown() == "");
        job.call(a, 300);
        job.call(b, 300);
        CHECK(job.shown() == "0 exactly/2 calls 1 joined 1 last 1 skews 1; 1 exactly/2 calls 1 joined 1; ");
    }
}

TEST_CASE("the duration of ncclGroupEnd is divided among the calls of the group", "[collectives]")
{
    Job job;
    const uint32_t a = job.rank(0, 2);
    job.call(a, 200, "ncclGroupStart");
    for (int i = 0; i < 3; i++)
        job.call(a, 201);
    job.call(a, 205, "ncclGroupEnd");
    CHECK(job.parts()[0].sums.enqueue_ns == 3 * 10 + 10);
}

TEST_CASE("two communicators with the same hash are distinguished", "[collectives]")
{
    Job job;
    job.call(job.rank(0, 2), 100);
    job.call(job.rank(0, 2), 100); // the same rank and hash, so a communicator of another job
    job.call(job.rank(1, 2), 150);
    job.collectives.join(true);
    const auto parts = job.collectives.drain();
    CHECK(std::ranges::count(parts, 1U, [](const auto& part) { return part.sums.joined; }) == 2);
}

TEST_CASE("shift_between uses operations and waits", "[collectives]")
{
    // Rounds of 1000 ns. In each round, `later` arrives 900 ns after `steady`, and both waits return at 950 ns. `later`
    // lacks the first three rounds.
    std::vector<Pattern> steady, later;
    for (uint64_t i = 0; i < 40; i++)
        steady.push_back({i * 1000, i * 1000 + 950, 1});
    for (uint64_t i = 3; i < 40; i++)
        later.push_back({i * 1000 + 900, i * 1000 + 950, 1});
    CHECK(shift_between(later, steady) == 3);
    CHECK(shift_between(steady, later) == -3);
    SECTION("arrival times alone are not sufficient")
    {
        for (std::vector<Pattern>* calls : {&steady, &later})
            for (Pattern& call : *calls)
                call.done_ns = Pattern::never;
        CHECK(shift_between(later, steady) == std::nullopt);
    }
    SECTION("some waits may be for other work")
    {
        for (size_t i = 0; i < later.size(); i += 5)
            steady[i].done_ns = steady[i].ns + 10;
        CHECK(shift_between(later, steady) == 3);
    }
    SECTION("without wait times, the operations are sufficient if they differ between rounds")
    {
        std::mt19937 random(1);
        for (Pattern& call : steady) {
            call.signature = random() % 5;
            call.done_ns = UINT64_MAX - 1;
        }
        for (size_t i = 0; i < later.size(); i++)
            later[i].signature = steady[i + 3].signature;
        CHECK(shift_between(later, steady) == 3);
    }
    CHECK(shift_between({}, steady) == std::nullopt);
}

TEST_CASE("ranks that started before tracing are aligned", "[collectives]")
{
    Job job;
    std::vector<uint32_t> ranks;
    for (int i = 0; i < 4; i++)
        ranks.push_back(job.rank(i, 4, 7, false));
    std::mt19937 random(1);
    // Rank 2 is late by most of a round.
    const auto round = [&](uint64_t begin) {
        for (int i = 0; i < 4; i++)
            job.call(ranks[static_cast<size_t>(i)], begin + random() % 100 + (i == 2) * 9000u);
        for (int i = 0; i < 4; i++)
            job.wait(ranks[static_cast<size_t>(i)], begin + 9100, begin + 9200 + random() % 100);
    };
    SECTION("by their waits")
    {
        // Tracing begins in the middle of a round, so only the late rank's call of the first collective is recorded.
        job.call(ranks[2], 999'000);
        for (uint64_t n = 0; n < 100; n++)
            round(1'000'000 + n * 10'000);
        const auto parts = job.parts();
        CHECK(parts.at(0).joined == Joined::aligned);
        CHECK(parts.at(2).sums.last == 100);
        CHECK(parts.at(2).sums.unjoined == 1);
        CHECK(parts.at(0).sums.unjoined == 0);
        CHECK(parts.at(0).sums.joined == 100);
        SECTION("ranks are aligned again after a lost call")
        {
            job.lose(ranks[1]);
            for (uint64_t n = 0; n < 100; n++)
                round(9'000'000 + n * 10'000);
            const auto after = job.parts();
            CHECK(after.at(2).sums.last >= 98);
            CHECK(after.at(2).sums.unjoined <= 2);
        }
    }
    SECTION("not without waits")
    {
        for (uint64_t n = 0; n < 100; n++)
            for (const uint32_t rank : ranks)
                job.call(rank, n * 10'000);
        CHECK(job.collectives.needs_alignment());
        CHECK(job.shown().starts_with("0 not_yet/4 calls 100 unjoined 100; "));
    }
}

TEST_CASE("calls of a destroyed rank are still joined", "[collectives]")
{
    Job job;
    const uint32_t a = job.rank(0, 2), b = job.rank(1, 2);
    job.call(a, 100);
    job.call(a, 110, "ncclCommDestroy");
    job.collectives.join();
    job.call(b, 150);
    job.call(b, 160, "ncclCommDestroy");
    CHECK(job.shown(false) ==
          "0 exactly/2 calls 1 joined 1 wait 50; 1 exactly/2 calls 1 joined 1 last 1 late 50 skews 1; ");
    CHECK(job.shown(false) == "");
    CHECK(job.collectives.drain().empty());
}

TEST_CASE("queues of ranks whose peers make no calls are bounded", "[collectives]")
{
    Job job;
    std::vector<uint32_t> busy;
    constexpr uint64_t jobs = 40, calls = 60'000;
    for (uint64_t hash = 1; hash <= jobs; hash++) {
        busy.push_back(job.rank(0, 2, hash));
        job.rank(1, 2, hash);
    }
    uint64_t unjoined = 0;
    const auto drain = [&] {
        job.collectives.join();
        for (const Collectives::Part& part : job.collectives.drain())
            unjoined += part.sums.unjoined;
    };
    for (const uint32_t rank : busy)
        for (uint64_t n = 0; n < calls; n++)
            job.call(rank, n);
    drain();
    CHECK(unjoined == jobs * calls);
    job.call(busy[0], calls);
    drain();
    CHECK(unjoined == jobs * calls); // the last call is queued
}

using Stall = Collectives::Stall;

TEST_CASE("a stall names the rank that has not entered a collective", "[collectives]")
{
    Job job;
    const uint32_t a = job.rank(0, 3), b = job.rank(1, 3), c = job.rank(2, 3);
    for (const uint32_t rank : {a, b, c})
        job.call(rank, 100);
    job.collectives.join();
    CHECK(job.collectives.stalls(99).empty());
    REQUIRE(job.collectives.stalls(100).size() == 1);
    CHECK(job.collectives.stalls(100)[0].kind == Stall::Kind::silent);
    CHECK(job.collectives.stalls(100)[0].ref.number == 1);
    job.call(a, 210);
    job.call(c, 200);
    job.call(a, 220);
    job.collectives.join();
    CHECK(job.collectives.stalls(199).empty());
    const auto stalls = job.collectives.stalls(200);
    REQUIRE(stalls.size() == 1);
    const Stall& stall = stalls[0];
    CHECK(stall.kind == Stall::Kind::missing);
    CHECK(stall.since_ns == 200);
    CHECK(stall.ref.number == 2);
    REQUIRE(stall.members.size() == 3);
    CHECK(stall.members[0].ns == 210); // time of its call of the second collective, not of the third
    CHECK(stall.members[0].has_entered);
    CHECK_FALSE(stall.members[1].has_entered);
    CHECK(stall.members[1].ns == 100);
    SECTION("also after its process has exited")
    {
        job.collectives.forget({.pid = 100 + b, .serial = 1});
        for (int tick = 0; tick < 5; tick++)
            job.collectives.join();
        REQUIRE(job.collectives.stalls(200).size() == 1);
        CHECK(job.collectives.stalls(200)[0].members[1].exited);
        CHECK(job.shown() == "0 exactly/3 calls 3 joined 1 unjoined 2 last 1 skews 1; 1 exactly/3 calls 1 joined 1; 2 "
                             "exactly/3 calls 2 joined 1 unjoined 1; ");
    }
    SECTION("but not after the rank has entered the collective")
    {
        job.call(b, 300);
        job.collectives.join();
        const auto after = job.collectives.stalls(300);
        REQUIRE(after.size() == 1); // now two ranks have not entered the third collective
        CHECK(after[0].ref.number == 3);
    }
}

TEST_CASE("a communicator without calls, or without matched calls (aligned), is not stalled", "[collectives]")
{
    Job idle;
    idle.rank(0, 1);
    CHECK(idle.shown(false) == "");
    CHECK(idle.collectives.stalls(UINT64_MAX).empty());
    Job job;
    const uint32_t a = job.rank(0, 2, 7, false);
    job.rank(1, 2, 7, false);
    for (uint64_t i = 0; i < 100; i++)
        job.call(a, i);
    job.collectives.join();
    CHECK(job.collectives.stalls(UINT64_MAX).empty());
}

TEST_CASE("a mismatch is reported once", "[collectives]")
{
    Job job;
    const uint32_t a = job.rank(0, 2), b = job.rank(1, 2);
    const auto mismatches = [&] {
        job.collectives.join();
        return job.collectives.stalls(0).size();
    };
    for (int i = 0; i < 3; i++) {
        job.call(a, 100);
        job.call(b, 100, "ncclAllReduce", 11);
    }
    CHECK(mismatches() == 1);
    CHECK(mismatches() == 0);
    job.call(a, 200);
    job.call(b, 200, "ncclAllReduceConfig");
    CHECK(mismatches() == 0);
    job.call(a, 300);
    job.call(b, 300, "ncclAllGather");
    CHECK(mismatches() == 1);
}

TEST_CASE("the line of a collective is complete after the next call of each rank", "[collectives]")
{
    Job job(true);
    const uint32_t a = job.rank(0, 2), b = job.rank(1, 2);
    const auto lines = [&](uint64_t now_ns, bool last = false) {
        job.collectives.join();
        return job.collectives.drain_lines(now_ns, last);
    };
    job.call(b, 130);
    job.call(a, 100);
    CHECK(lines(1000).empty());
    job.wait(a, 110, 150); // the wait for its first call
    job.wait(a, 160, 170); // a shorter wait, which does not count
    job.call(a, 200);
    CHECK(lines(1000).empty());
    job.wait(a, 210, 215);
    job.call(b, 220);
    const auto first = lines(1000);
    REQUIRE(first.size() == 1);
    CHECK(first[0].joined);
    CHECK(first[0].ref.number == 1);
    REQUIRE(first[0].ranks.size() == 2);
    CHECK(first[0].ranks[0].ns == 100);
    CHECK(first[0].ranks[0].wait_ns == 40);
    CHECK(first[0].ranks[1].wait_ns == 0);
    CHECK(lines(UINT64_MAX).empty()); // b has not waited, or made a call, after its second call
    const auto second = lines(1000, true);
    REQUIRE(second.size() == 1);
    CHECK(second[0].ranks[0].wait_ns == 5);
}

TEST_CASE("texts of ranks and collectives", "[collectives]")
{
    const unsigned some[] = {0, 1, 2, 5, 7, 8};
    CHECK(ranks_in_words(some) == "ranks 0-2,5,7-8");
    CHECK(ranks_in_words(std::span(some, 1)) == "rank 0");
    Collectives::RankArrival arrival;
    arrival.operation = "Reduce";
    arrival.elements = 12;
    arrival.type = 200;
    arrival.reduction = 9;
    arrival.root = 3;
    CHECK(arguments_in_words(arrival) == "Reduce of 12 of type 200, custom reduction, root 3");
    arrival.bytes = 4096;
    CHECK(collective_in_words({}, arrival) == "Reduce of 4 KiB");
    CHECK(collective_in_words({.number = 4}, arrival) == "Reduce of 4 KiB (collective 4)");
}

TEST_CASE("an idle communicator is scanned less and less often, until something changes", "[collectives]")
{
    constexpr uint64_t second = 1'000'000'000;
    IdleScans scans;
    const auto scanned = [&](uint64_t from, uint64_t to, uint64_t since_ns, bool waits = false) {
        unsigned times = 0;
        for (uint64_t now = from; now < to; now++) {
            times += scans.is_due(1, since_ns, waits, now * second);
            scans.end_round();
        }
        return times;
    };
    CHECK(scanned(0, 4, 5) == 4);
    CHECK(scanned(4, 600, 5) < 130);
    CHECK(scanned(600, 620, 5) >= 4); // 20 s contain the longest pause (16 s) and its 4 scans
    CHECK(scanned(620, 624, 6) == 4); // there was a new call, so it is scanned each second again
    CHECK(scanned(624, 700, 6, true) == 76);
    scans.end_round();
    CHECK(scanned(701, 705, 6) == 4);
}
