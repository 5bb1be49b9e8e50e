// SPDX-License-Identifier: Apache-2.0
// NCCL calls: what the kernel side reads from each function's arguments and from communicators. All ranks of a job are
// in this process.
#include "base/clock.hpp"
#include "bpf/shared/collective.h"
#include "tests/bpf/compiled_calls.hpp"
#include "tests/bpf/fake_run.hpp"
#include "tests/unit/attach/bpf_here.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <thread>
#include <tuple>
#include <unistd.h>

using namespace gpusnoop;

namespace {

using LossCounts = std::map<std::string, uint64_t>;

enum : uint64_t { float32 = 7, bfloat16 = 9, invalid_argument = 4, invalid_usage = 5, in_progress = 7 };

// The process of a job's ranks.
class Job {
public:
    explicit Job(const std::string& options, const std::map<std::string, uint32_t>& entries = {})
        : run("ncclwait " + options, entries)
    {
        run.set_file_word(COMM_HAS_MAGIC | 8);
    }

    // Creates the communicator of one rank, at its own address.
    uint64_t rank(uint64_t number, uint64_t ranks, uint64_t hash = 0xabc)
    {
        const auto handle = reinterpret_cast<uint64_t>(identity(number, ranks, hash));
        run.call("ncclCommInitRank", {{ARG_OUT, out({handle})}});
        return handle;
    }
    // Memory of a communicator whose rank is at offset 64, as in the file's word.
    uint64_t* identity(uint64_t number, uint64_t ranks, uint64_t hash)
    {
        return run.memory({COMM_MAGIC, 0, 0, 0, 0, 0, 0, hash, number | ranks << 32, number + 3});
    }
    uint64_t out(std::initializer_list<uint64_t> handles) { return reinterpret_cast<uint64_t>(run.memory(handles)); }
    void reduce(uint64_t comm, uint64_t count = 1, uint64_t result = 0, uint64_t stream = 0)
    {
        run.call("ncclAllReduce", reduction(comm, count, stream), result);
    }
    static Arguments reduction(uint64_t comm, uint64_t count = 1, uint64_t stream = 0)
    {
        return {
            {ARG_HANDLE, comm}, {ARG_BYTES, count}, {ARG_FORMAT, float32}, {ARG_REDUCTION, 0}, {ARG_STREAM, stream}};
    }

    FakeRun run;
};

bool has_bytes(const CompiledCall& call)
{
    return call.passes(ARG_BYTES);
}

// Name of an operation, and the number of ranks by which a call's count is multiplied in a job of 2 ranks.
std::pair<std::string, uint64_t> operation(std::string_view symbol)
{
    std::string name(symbol.substr(4));
    if (name.ends_with("Config"))
        name.resize(name.size() - 6);
    if (name == "AllToAll")
        name = "AlltoAll";
    if (name == "Bcast")
        name = "Broadcast";
    const bool shares =
        name == "AllGather" || name == "ReduceScatter" || name == "AlltoAll" || name == "Gather" || name == "Scatter";
    return {name, shares ? 2 : 1};
}

std::string hex(uint64_t value)
{
    return fmt::format("{:#x}", value);
}

} // namespace

TEST_CASE("every NCCL function is counted with the arguments that a compiled call passed", "[bpf][ncclwait]")
{
    need_bpf();
    Job job("--by rank,op,stream");
    const uint64_t comms[] = {job.rank(0, 2), job.rank(1, 2)};
    constexpr CallSet counted = calls_of({KIND_COLLECTIVE, KIND_MESSAGE});
    unsigned number = 0; // of the collective
    for (CompiledCall& call : compiled_calls(job.run, counted)) {
        INFO(call.probe.symbol);
        const auto [name, factor] = operation(call.probe.symbol);
        const bool collective = call.probe.row.kind == KIND_COLLECTIVE;
        for (const auto& [which, value] :
             {std::pair{ARG_BYTES, 1000}, std::pair{ARG_REDUCTION, 2}, std::pair{ARG_ROOT, 1}})
            if (call.passes(which))
                call.pass(which, static_cast<uint64_t>(value));
        for (const size_t rank : {0, 1}) { // the second rank passes another type, and so causes a verdict
            call.pass(ARG_HANDLE, comms[rank]);
            if (call.passes(ARG_FORMAT))
                call.pass(ARG_FORMAT, rank ? bfloat16 : float32);
            job.run.call(call.probe, *call.call);
        }
        number += collective;
        unsigned rows = 0, verdicts = 0;
        for (const json& row : job.run.report()) {
            INFO(row);
            CHECK(row["communicator"] == "0000000000000abc");
            CHECK(row["ranks"] == 2);
            CHECK(row["ranks_here"] == 2);
            CHECK(row["join"] == "exact");
            if (row.contains("verdict")) {
                const std::string end = fmt::format("{}{}", call.passes(ARG_REDUCTION) ? ", max" : "",
                                                    call.passes(ARG_ROOT) ? ", root 1" : "");
                CHECK(row["verdict"] == "mismatch");
                const std::string count = has_bytes(call) ? "1000 " : "";
                CHECK(row["text"] ==
                      fmt::format("mismatch: collective {} differs between ranks: rank 0 calls {} of {}float32{}; "
                                  "rank 1 calls {} of {}bfloat16{}",
                                  number, name, count, end, name, count, end));
                verdicts++;
                continue;
            }
            rows++;
            const uint64_t rank = row["rank"];
            CHECK(row["device"] == rank + 3);
            CHECK(row["op"] == name);
            CHECK(row["stream"] == hex(call.passed[0].at(ARG_STREAM)));
            CHECK(row["calls"] == 1);
            CHECK(row["bytes"] == (has_bytes(call) ? 1000 * factor * (rank ? 2 : 4) : 0));
            CHECK(row["unsized_calls"] == (has_bytes(call) ? 0 : 1));
            CHECK(row["joined_calls"] == (collective ? 1 : 0));
            CHECK(row["errors"] == 0);
        }
        CHECK(rows == 2);
        CHECK(verdicts == (collective ? 1 : 0));
        for (const uint64_t comm : comms) // a matching collective, after which a mismatch is reported again
            job.reduce(comm);
        number++;
        job.run.report();
    }
    CHECK(job.run.losses().empty());
}

TEST_CASE("groups, results, captures and new communicators", "[bpf][ncclwait]")
{
    need_bpf();
    Job job("--by rank,op");
    FakeRun& run = job.run;
    const uint64_t comms[] = {job.rank(0, 2), job.rank(1, 2)};
    using Sums = std::array<uint64_t, 5>; // calls, errors, bytes, captured, joined
    const auto totals = [&run] {
        std::map<std::string, Sums> sums;
        for (const json& row : run.report()) {
            const Sums now = {row["calls"], row["errors"], row["bytes"], row["captured_calls"], row["joined_calls"]};
            Sums& sum = sums[fmt::format("{} {}", row.value("rank", json("-")).dump(), row["op"].get<std::string>())];
            std::ranges::transform(sum, now, sum.begin(), std::plus<>());
        }
        CHECK(run.losses().empty());
        return sums;
    };
    const auto group = [&](std::string_view end, uint64_t result, uint64_t count) {
        for (const uint64_t comm : comms) {
            run.call("ncclGroupStart");
            run.call("ncclGroupStart"); // a nested group
            job.reduce(comm, count);
            run.call("ncclGroupEnd");
            run.call("ncclSend", {{ARG_HANDLE, comm}, {ARG_BYTES, count}, {ARG_FORMAT, float32}});
            run.call(end, {}, result);
        }
    };
    struct Group {
        std::string_view end;
        uint64_t result;
        bool done;
        uint64_t errors;
    };
    for (const auto& [end, result, done, errors] :
         {Group{"ncclGroupEnd", 0, true, 0}, Group{"ncclGroupEnd", in_progress, true, 0},
          Group{"ncclGroupEnd", invalid_usage, false, 1}, Group{"ncclGroupSimulateEnd", 0, false, 0}}) {
        INFO(end << ' ' << result);
        group(end, result, 10);
        const uint64_t calls = done ? 1 : 0;
        if (!calls && !errors) {
            CHECK(totals().empty());
            continue;
        }
        CHECK(totals() == std::map<std::string, Sums>{{"0 AllReduce", {calls, errors, 40 * calls, 0, calls}},
                                                      {"1 AllReduce", {calls, errors, 40 * calls, 0, calls}},
                                                      {"0 Send", {calls, errors, 40 * calls, 0, 0}},
                                                      {"1 Send", {calls, errors, 40 * calls, 0, 0}}});
    }

    const Arguments stream = {{ARG_STREAM, 0x77}};
    for (const uint64_t comm : comms) {
        job.reduce(comm, 3, invalid_argument);
        job.reduce(comm, 3, in_progress);
        job.reduce(comm, 0);
        run.enter("ncclAllToAll", {{ARG_HANDLE, comm}, {ARG_BYTES, 5}, {ARG_FORMAT, bfloat16}});
        run.call("ncclSend", {{ARG_HANDLE, comm}, {ARG_BYTES, 9}}); // NCCL's own call is not counted
        run.leave();
        run.call("cuStreamBeginCapture_v2", stream);
        job.reduce(comm, 7, 0, 0x77);
        job.reduce(comm, 1, 0, 0x78);
        run.call("cuStreamEndCapture", stream);
        job.reduce(comm, 1, 0, 0x77);
    }
    CHECK(totals() == std::map<std::string, Sums>{{"0 AllReduce", {5, 1, 12 + 28 + 4 + 4, 1, 4}},
                                                  {"1 AllReduce", {5, 1, 12 + 28 + 4 + 4, 1, 4}},
                                                  {"0 AlltoAll", {1, 0, 5 * 2 * 2, 0, 1}},
                                                  {"1 AlltoAll", {1, 0, 5 * 2 * 2, 0, 1}}});

    // New communicators at the same addresses. One call creates both.
    for (const uint64_t comm : comms)
        run.call("ncclCommDestroy", {{ARG_HANDLE, comm}});
    for (const size_t rank : {0, 1})
        reinterpret_cast<uint64_t*>(comms[rank])[7] = 0xdef;
    run.call("ncclCommInitAll", {{ARG_OUT, job.out({comms[0], comms[1]})}, {ARG_COUNT, 2}});
    for (const uint64_t comm : comms)
        job.reduce(comm, 2);
    unsigned rows = 0;
    for (const json& row : run.report()) {
        CHECK(row["communicator"] == "0000000000000def");
        CHECK(row["join"] == "exact");
        CHECK(row["joined_calls"] == 1);
        rows++;
    }
    CHECK(rows == 2);

    // Every function that creates communicators, each of its own job.
    uint64_t hash = 0x1000;
    for (CompiledCall& call : compiled_calls(run, calls_of({KIND_COMM_NEW}))) {
        INFO(call.probe.symbol);
        hash++;
        std::vector<uint64_t> handles;
        for (const uint64_t rank : {0, 1}) {
            handles.push_back(reinterpret_cast<uint64_t>(job.identity(rank, 2, hash)));
            call.pass(ARG_OUT, job.out({handles.back(), rank ? handles[0] : 0}));
            if (call.passes(ARG_COUNT) && rank == 0)
                continue; // one call creates both
            if (call.passes(ARG_COUNT))
                call.pass(ARG_COUNT, 2);
            run.call(call.probe, *call.call);
        }
        for (const uint64_t comm : handles)
            job.reduce(comm);
        rows = 0;
        for (const json& row : run.report()) {
            INFO(row);
            CHECK(row["communicator"] == fmt::format("{:016x}", hash));
            CHECK(row["join"] == "exact");
            CHECK(row["joined_calls"] == 1);
            rows++;
        }
        CHECK(rows == 2);
    }

    // A communicator without a valid identity: wrong magic word, implausible rank, or no memory.
    uint64_t* const invalid[] = {job.identity(0, 2, 1), job.identity(2, 2, 1)};
    invalid[0][0] = 1;
    for (const uint64_t handle :
         {reinterpret_cast<uint64_t>(invalid[0]), reinterpret_cast<uint64_t>(invalid[1]), FakeRun::unreadable}) {
        job.reduce(handle, 6);
        run.call("ncclAllGather", {{ARG_HANDLE, handle}, {ARG_BYTES, 6}, {ARG_FORMAT, float32}});
        uint64_t calls = 0;
        for (const json& row : run.report()) {
            for (const char* key : {"communicator", "rank", "ranks", "ranks_here", "join", "wait_ns", "last_rank"})
                CHECK_FALSE(row.contains(key));
            const bool sized = row["op"] == "AllReduce"; // without the number of ranks
            CHECK(row["bytes"] == (sized ? 24 : 0));
            CHECK(row["unsized_calls"] == (sized ? 0 : 1));
            CHECK(row["joined_calls"] == 0);
            calls += row["calls"].get<uint64_t>();
        }
        CHECK(calls == 2);
    }
    CHECK(run.losses().empty());

    run.leave_unseen("ncclAllReduce");
    CHECK(run.losses() == LossCounts{{"ends_unmatched", 1}});
    run.enter("ncclAllReduce", Job::reduction(comms[0]));
    run.jump_out();
    job.reduce(comms[0]);
    CHECK(run.losses() == LossCounts{{"calls_left", 1}});
}

TEST_CASE("failed calls and asynchronous errors, of every NCCL function", "[bpf][ncclwait]")
{
    need_bpf();
    Job job("-x -e");
    FakeRun& run = job.run;
    const uint64_t comm = job.rank(1, 3);
    for (CompiledCall& call : compiled_calls(run, nccl_calls)) {
        INFO(call.probe.symbol);
        if (call.passes(ARG_HANDLE))
            call.pass(ARG_HANDLE, comm);
        run.call(call.probe, *call.call, invalid_argument);
        const std::vector<json> lines = run.report();
        if (call.probe.row.kind == KIND_GROUP_BEGIN) {
            CHECK(lines.empty());
            continue;
        }
        REQUIRE(lines.size() == 1);
        CHECK(lines[0]["op"] == operation(call.probe.symbol).first);
        CHECK(lines[0]["result"] == "ncclInvalidArgument");
        CHECK(lines[0]["result_code"] == invalid_argument);
        CHECK(lines[0]["pid"] == getpid());
        CHECK(lines[0]["tid"] == gettid());
        CHECK(lines[0].contains("communicator") == call.passes(ARG_HANDLE));
        if (call.passes(ARG_HANDLE)) {
            CHECK(lines[0]["communicator"] == "0000000000000abc");
            CHECK(lines[0]["rank"] == 1);
            CHECK(lines[0]["ranks"] == 3);
        }
        run.call("ncclCommInitRank", {{ARG_OUT, job.out({comm})}}); // the call may have destroyed it
    }

    const auto query = [&](uint64_t error, bool readable = true) {
        const uint64_t out = readable ? job.out({0xbad'0000'0000 | error}) : FakeRun::unreadable;
        run.call("ncclCommGetAsyncError", {{ARG_HANDLE, comm}, {ARG_OUT, out}});
        std::vector<std::string> results;
        for (const json& line : run.report()) {
            CHECK(line["op"] == "AsyncError");
            results.push_back(line["result"]);
        }
        return results;
    };
    using Results = std::vector<std::string>;
    CHECK(query(0).empty());
    CHECK(query(in_progress).empty());
    CHECK(query(6, false).empty());
    CHECK(query(6) == Results{"ncclRemoteError"});
    CHECK(query(6).empty()); // reported already
    CHECK(query(1) == Results{"ncclUnhandledCudaError"});
    CHECK(run.losses().empty());
}

TEST_CASE("the last rank, its lateness, and how long the others wait for it", "[bpf][ncclwait]")
{
    need_bpf();
    constexpr size_t ranks = 4, rounds = 5, late = 2;
    for (const std::string_view by : {"rank", "communicator"}) {
        INFO(by);
        Job job(fmt::format("--by {}", by));
        uint64_t comms[ranks];
        for (size_t rank = 0; rank < ranks; rank++)
            comms[rank] = job.rank(rank, ranks);
        struct Time {
            uint64_t before, after;
        };
        struct Bounds {
            uint64_t low = 0, high = 0;
            bool holds(uint64_t value) const { return low <= value && value <= high; }
            void add(uint64_t before, uint64_t after) { low += before, high += after; }
        };
        Bounds waits[ranks], lateness;
        uint64_t least_skew = UINT64_MAX, most_skew = 0;
        for (size_t round = 0; round < rounds; round++) {
            Time times[ranks];
            for (const size_t rank : {0, 1, 3, 2}) {
                if (rank == late)
                    std::this_thread::sleep_for(std::chrono::microseconds(1100));
                times[rank].before = clock_ns(CLOCK_MONOTONIC);
                job.reduce(comms[rank], 5000);
                times[rank].after = clock_ns(CLOCK_MONOTONIC);
            }
            for (size_t rank = 0; rank < ranks; rank++)
                if (rank != late)
                    waits[rank].add(times[late].before - times[rank].after, times[late].after - times[rank].before);
            least_skew = std::min(least_skew, times[late].before - times[0].after);
            most_skew = std::max(most_skew, times[late].after - times[0].before);
            lateness.add(times[late].before - times[3].after, times[late].after - times[3].before);
        }
        for (const json& row : job.run.report()) {
            INFO(row);
            CHECK(row["op"] == "AllReduce");
            CHECK(row["ranks"] == ranks);
            CHECK(row["ranks_here"] == ranks);
            CHECK(row["join"] == "exact");
            CHECK(row["joined_calls"] == rounds);
            CHECK(row["unjoined_calls"] == 0);
            if (by == "communicator") {
                CHECK(row["calls"] == ranks * rounds);
                CHECK(row["bytes"] == ranks * rounds * 20'000);
                CHECK(row["last_rank"] == late);
                CHECK(row["last_calls"] == rounds);
                CHECK(lateness.holds(row["late_ns"]));
                CHECK(row["skew_p50_ns"].get<double>() >= 0.93 * static_cast<double>(least_skew)); // of the bucket
                CHECK(row["skew_p99_ns"].get<double>() <= 1.07 * static_cast<double>(most_skew));
                CHECK(row["wait_ns"] >= waits[0].low + waits[1].low + waits[3].low);
                CHECK(row["wait_ns"] <= waits[0].high + waits[1].high + waits[3].high);
                continue;
            }
            const size_t rank = row["rank"];
            CHECK(row["calls"] == rounds);
            CHECK(row["last_calls"] == (rank == late ? rounds : 0));
            CHECK(waits[rank].holds(row["wait_ns"]));
            if (rank == late)
                CHECK(lateness.holds(row["late_ns"]));
        }
        CHECK(job.run.losses().empty());
    }
}

TEST_CASE("histograms of skew, size and enqueue durations, by operation and size", "[bpf][ncclwait]")
{
    need_bpf();
    for (const std::string_view measure : {"skew", "size", "enqueue"}) {
        INFO(measure);
        Job job(fmt::format("-H {} --by op,size", measure));
        const uint64_t comms[] = {job.rank(0, 2), job.rank(1, 2)};
        for (const auto& [count, times] : {std::pair{1000, 3}, std::pair{100'000, 2}, std::pair{0, 1}})
            for (int i = 0; i < times; i++) {
                job.reduce(comms[0], static_cast<uint64_t>(count));
                if (count == 1000)
                    std::this_thread::sleep_for(std::chrono::microseconds(600));
                job.reduce(comms[1], static_cast<uint64_t>(count));
            }
        std::map<uint64_t, uint64_t> totals;
        for (const json& record : job.run.report()) {
            CHECK(record["op"] == "AllReduce");
            CHECK(record["measure"] == measure);
            CHECK(record["unit"] == (measure == "size" ? "bytes" : "usecs"));
            const uint64_t size = record["size_bytes"];
            for (const json& bucket : record["buckets"])
                totals[size] += bucket["count"].get<uint64_t>();
            if (measure == "size")
                CHECK(record["buckets"].size() == 1);
            if (measure == "skew" && size == 2048)
                CHECK(record["p50"] >= 560);
        }
        const uint64_t each = measure == "skew" ? 1 : 2; // a skew per collective, other values per call
        CHECK(totals == std::map<uint64_t, uint64_t>{{2048, 3 * each}, {262'144, 2 * each}, {0, each}});
        CHECK(job.run.losses().empty());
    }
}

TEST_CASE("several communicators in one row, and lines of collectives", "[bpf][ncclwait]")
{
    need_bpf();
    Job full("--by thread", {{"comms", 5}}); // one process may use 4
    for (const uint64_t hash : {1, 2}) {
        const uint64_t comms[] = {full.rank(0, 2, hash), full.rank(1, 2, hash)};
        for (int i = 0; i < 3; i++)
            for (const uint64_t comm : comms)
                full.run.call(hash == 1 ? "ncclAllReduce" : "ncclAllGather",
                              {{ARG_HANDLE, comm}, {ARG_BYTES, 1}, {ARG_FORMAT, float32}});
    }
    const std::vector<json> rows = full.run.report();
    REQUIRE(rows.size() == 1);
    CHECK(rows[0]["tid"] == gettid());
    CHECK(rows[0]["calls"] == 12);
    CHECK(rows[0]["joined_calls"] == 12);
    CHECK(rows[0]["op"] == "AllGather,AllReduce");
    for (const char* key : {"communicator", "last_rank", "ranks"}) // of one communicator
        CHECK_FALSE(rows[0].contains(key));
    CHECK(full.run.losses().empty());
    full.reduce(0x3000);
    CHECK(full.run.losses() == LossCounts{{"state_lost", 1}});

    Job job("-e");
    FakeRun& run = job.run;
    const uint64_t alone = job.rank(0, 1, 0x99), comms[] = {job.rank(0, 2), job.rank(1, 2)};
    run.call("cuCtxSynchronize");
    for (int round = 0; round < 2; round++)
        for (const uint64_t comm : comms)
            job.reduce(comm, 5000);
    job.reduce(alone);
    job.reduce(alone);
    std::vector<std::tuple<std::string, uint64_t, uint64_t>> lines; // join, sequence, rank
    for (const json& line : run.report()) {
        INFO(line);
        lines.emplace_back(line["join"], line["sequence"], line["rank"]);
        CHECK(line["op"] == "AllReduce");
        CHECK(line["tid"] == gettid());
        const bool joined = line["join"] == "exact";
        CHECK(line["bytes"] == (joined ? 20'000 : 4));
        CHECK(line.contains("offset_ns") == joined);
        CHECK(line.contains("skew_ns") == joined);
        if (joined) {
            CHECK(line["last_rank"] == 1);
            CHECK((line["offset_ns"] == 0) == (line["rank"] == 0));
            CHECK(line["skew_ns"] == line["late_ns"]);
        }
    }
    std::ranges::sort(lines);
    CHECK(lines == decltype(lines){{"alone", 1, 0}, {"exact", 1, 0}, {"exact", 1, 1}});
    CHECK(run.losses().empty());
}
