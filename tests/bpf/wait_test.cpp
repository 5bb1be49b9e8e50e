// SPDX-License-Identifier: Apache-2.0
// Waits for the device: what the kernel side counts for each function, in each mode, and while a wait is in flight.
#include "base/clock.hpp"
#include "tests/bpf/compiled_calls.hpp"
#include "tests/bpf/fake_run.hpp"
#include "tests/unit/attach/bpf_here.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <ctime>
#include <fmt/format.h>
#include <thread>
#include <unistd.h>

using namespace gpusnoop;

namespace {

using LossCounts = std::map<std::string, uint64_t>;

constexpr uint64_t not_ready = 600, launch_failed = 719;

bool has(std::string_view name, std::string_view part)
{
    return name.find(part) != std::string_view::npos;
}

// The kind of wait of a function, by its name; "" if the function does not wait.
std::string_view wait_of(std::string_view name)
{
    if (has(name, "Async") || has(name, "Memset") || has(name, "Batch"))
        return "";
    if (has(name, "Query"))
        return "poll";
    if (has(name, "WaitValue"))
        return "value";
    if (has(name, "EventSynchronize"))
        return "event";
    if (has(name, "StreamSynchronize"))
        return "stream";
    if (has(name, "Synchronize"))
        return "context";
    if (has(name, "Memcpy"))
        return "copy";
    for (const std::string_view free : {"MemFree", "cudaFree", "hipFree", "hipHostFree", "HostUnregister", "IpcClose"})
        if (name.find(free) <= 5)
            return "free";
    return "";
}

std::string hex(uint64_t value)
{
    return fmt::format("{:#x}", value);
}

struct Clock {
    uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    uint64_t elapsed() const { return clock_ns(CLOCK_MONOTONIC) - begin; }
};

void sleep_us(uint64_t us)
{
    std::this_thread::sleep_for(std::chrono::microseconds(us));
}

// Bounds of a sum of durations: the time spent inside of the calls, and the time around them.
struct Bounds {
    uint64_t low = 0, high = 0;
    void check(uint64_t ns) const
    {
        CHECK(ns >= low);
        CHECK(ns <= high);
    }
};

// Makes a call that takes at least `us`.
void timed_call(FakeRun& run, Bounds& bounds, uint64_t us, std::string_view symbol, uint64_t result = 0)
{
    const Clock around;
    run.enter(symbol);
    const Clock inside;
    sleep_us(us);
    bounds.low += inside.elapsed();
    run.leave(result);
    bounds.high += around.elapsed();
}

json only(const std::vector<json>& rows)
{
    REQUIRE(rows.size() == 1);
    return rows[0];
}

} // namespace

TEST_CASE("every function that waits has a line with its kind of wait, stream and handle", "[bpf][cudasync]")
{
    need_bpf();
    FakeRun run("cudasync -e --api both");
    std::map<std::string_view, unsigned> kinds;
    for (const CompiledCall& call : compiled_calls(run, wait_calls)) {
        const std::string_view name = call.probe.symbol;
        INFO(name);
        const std::string_view result = call.probe.library == Library::driver    ? "CUDA_ERROR_LAUNCH_FAILED"
                                        : call.probe.library == Library::runtime ? "cudaErrorLaunchFailure"
                                                                                 : "hipErrorLaunchFailure";
        for (const uint64_t code : {uint64_t{0}, launch_failed}) {
            run.call(call.probe, *call.call, code);
            const json line = only(run.report());
            CHECK(line["function"] == name);
            CHECK(line["wait"] == wait_of(name));
            CHECK(line["layer"] == (call.probe.library == Library::driver    ? "driver"
                                    : call.probe.library == Library::runtime ? "runtime"
                                                                             : "hip"));
            const auto& passed = call.passed[0];
            const bool per_thread = has(name, "_pt") || has(name, "_spt"); // the thread's own stream is 0x2
            CHECK(line["stream"] == hex(passed.contains(ARG_STREAM) ? passed.at(ARG_STREAM) : per_thread ? 2 : 0));
            CHECK(line.contains("handle") ==
                  (has(name, "Event") || has(name, "cuCtxSynchronize_v2") || has(name, "hipExecutionCtx")));
            if (line.contains("handle"))
                CHECK(line["handle"] == hex(passed.at(ARG_HANDLE)));
            CHECK(line["not_ready"] == 0);
            CHECK(line["result_code"] == code);
            CHECK(line["result"] == (code ? result : "ok"));
            CHECK(line["tid"] == gettid());
        }
        kinds[wait_of(name)]++;
    }
    for (const Probe& probe : run.probes()) {
        INFO(probe.symbol);
        CHECK(wait_of(probe.symbol) != "");
    }
    CHECK(kinds.size() == 7);
    CHECK(run.losses().empty());
    for (const std::string_view other :
         {"cuMemcpyHtoDAsync_v2", "cuMemcpyAsync", "cuMemsetD8_v2", "cuMemsetD2D32_v2", "cuMemsetD8Async",
          "cuMemFreeAsync", "cuStreamWaitEvent", "cuMemcpyBatchAsync", "cuLaunchKernel", "cuLaunchHostFunc",
          "cudaMemcpyAsync", "cudaFreeAsync", "cudaLaunchKernel", "cuMemAlloc_v2"})
        CHECK_FALSE(run.handles(other));
}

namespace {

// Calls in both layers, some of which fail. The runtime's calls call the driver.
void make_calls(FakeRun& run)
{
    const auto nested = [&run](std::string_view outer, std::string_view inner, uint64_t result = 0) {
        run.enter(outer);
        run.call(inner);
        run.leave(result);
    };
    run.call("cuCtxSynchronize");
    run.call("cuCtxSynchronize", {}, not_ready); // an error of a wait
    run.call("cuCtxSynchronize", {}, launch_failed);
    nested("cudaDeviceSynchronize", "cuCtxSynchronize", launch_failed);
    nested("cudaMemcpy", "cuMemcpyHtoD_v2");
    nested("cudaMemcpy", "cuMemcpyHtoD_v2");
    run.call("cuMemcpyHtoD_v2");
    run.call("cuStreamQuery");
    run.call("cuStreamQuery", {}, not_ready);
    run.call("cuStreamQuery", {}, launch_failed);
    run.call("cudaEventQuery", {}, not_ready);
    run.call("cudaEventQuery", {}, 400);
    nested("cudaFree", "cuMemFree_v2");
    nested("cudaMalloc", "cuMemAlloc_v2");
    nested("cudaMemcpyAsync", "cuMemcpyHtoDAsync_v2");
}

using Outcomes = std::array<uint64_t, 3>; // calls, not ready, errors

// Compares all rows of `by` api and wait.
void check_rows(const std::vector<json>& rows, std::string_view options, const std::map<std::string, Outcomes>& wanted)
{
    std::map<std::string, Outcomes> counted;
    for (const json& row : rows) {
        INFO(row);
        const std::string function = row["function"];
        Outcomes& sums = counted[function];
        const Outcomes now = {row["calls"], row["not_ready"], row["errors"]};
        std::ranges::transform(sums, now, sums.begin(), std::plus<>());
        CHECK(row["wait"] == wait_of(function));
        CHECK(row["threads"] == 1);
        CHECK(row.value("waiting", 0) == 0);
        CHECK(row.contains("waiting") != has(options, "-x"));
        CHECK(row.contains("result_code") == has(options, "-x"));
        if (has(options, "-x"))
            CHECK((row["result_code"] != not_ready || row["wait"] == "context"));
        CHECK(row.contains("layer") == has(options, "both"));
        if (has(options, "both"))
            CHECK(row["layer"] == (has(function, "cuda") ? "runtime" : "driver"));
        CHECK(row["duration_p50_ns"] <= row["duration_p95_ns"]);
        CHECK(row["duration_p95_ns"] <= row["duration_p99_ns"]);
        CHECK(row["duration_p99_ns"] <= row["duration_max_ns"]);
        const double share = 100 * row["total_ns"].get<double>() / row["interval_ns"].get<double>();
        CHECK(std::abs(row["wall_percent"].get<double>() - share) < 0.01);
    }
    CHECK(counted == wanted);
}

void check_durations(FakeRun& run)
{
    Bounds waits, copies;
    for (int i = 0; i < 3; i++)
        timed_call(run, waits, 2100, "cuStreamSynchronize");
    timed_call(run, copies, 600, "cuMemcpyDtoH_v2", launch_failed);
    for (const json& row : run.report()) {
        INFO(row);
        const bool copy = row["wait"] == "copy";
        (copy ? copies : waits).check(row["total_ns"]);
        CHECK(row["calls"] == (copy ? 1 : 3));
        CHECK(row["duration_p50_ns"] >= (copy ? 560'000 : 1'950'000)); // the lower end of the bucket
        CHECK(row["duration_max_ns"] >= (copy ? 600'000 : 2'100'000));
        CHECK(row["duration_max_ns"] <= (copy ? copies : waits).high);
    }
}

// A wait in flight counts in each interval with its part of the time, and as a call when it returns.
void check_in_flight(FakeRun& run, bool both)
{
    const Clock around;
    const std::string_view function = both ? "cudaDeviceSynchronize" : "cuCtxSynchronize";
    run.enter(function);
    if (both)
        run.enter("cuCtxSynchronize");
    const Clock inside;
    uint64_t total = 0, longest = 0;
    for (int i = 0; i < 2; i++) {
        sleep_us(500);
        const json row = only(run.report());
        INFO(row);
        CHECK(row["calls"] == 0);
        CHECK(row["waiting"] == 1);
        CHECK(row["wait"] == "context");
        CHECK(row["threads"] == 1);
        CHECK(row["source"] == "calls");
        CHECK(row["waiting_earlier"] == 0);
        CHECK(row["duration_max_ns"] > longest);
        CHECK_FALSE(row.contains("duration_p50_ns"));
        if (i) { // the whole interval
            CHECK(row["total_ns"] == row["interval_ns"]);
            CHECK(row["wall_percent"] == 100);
        }
        longest = row["duration_max_ns"];
        total += row["total_ns"].get<uint64_t>();
    }
    const uint64_t least = inside.elapsed();
    if (both)
        run.leave();
    run.leave();
    const uint64_t most = around.elapsed();
    Bounds others;
    timed_call(run, others, 100, function); // in the same interval
    const json row = only(run.report());
    CHECK(row["calls"] == 2);
    CHECK(row["waiting"] == 0);
    CHECK(row["duration_max_ns"] >= least);
    CHECK(row["duration_max_ns"] <= most);
    total += row["total_ns"].get<uint64_t>();
    CHECK(total >= least + others.low);
    CHECK(total <= most + others.high);
}

// A wait that the thread has left is in flight until the thread's next call.
void check_left(FakeRun& run)
{
    std::map<std::string, uint64_t> wanted, calls;
    for (const auto& [left, then] :
         {std::pair{"cuCtxSynchronize", "cuEventSynchronize"}, std::pair{"cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2"},
          std::pair{"cuMemFree_v2", "cuStreamSynchronize"}}) {
        INFO(left << ", then " << then);
        run.enter(left);
        run.jump_out();
        if (wanted.empty())
            CHECK(only(run.report())["waiting"] == 1);
        CHECK(run.losses().empty());
        run.call(then);
        CHECK(run.losses() == LossCounts{{"calls_left", 1}});
        wanted[then] = 1;
    }
    for (const json& row : run.report()) {
        CHECK(row["waiting"] == 0);
        if (row["calls"] != 0)
            calls[row["function"]] = row["calls"];
    }
    CHECK(calls == wanted);
}

} // namespace

TEST_CASE("waits in driver calls, also in flight, left, or with an unseen entry", "[bpf][cudasync]")
{
    need_bpf();
    FakeRun run("cudasync --by api,wait");
    make_calls(run);
    check_rows(run.report(), "",
               {{"cuCtxSynchronize", {4, 0, 2}},
                {"cuMemcpyHtoD_v2", {3, 0, 0}},
                {"cuStreamQuery", {3, 1, 1}},
                {"cuMemFree_v2", {1, 0, 0}}});
    check_durations(run);
    check_in_flight(run, false);
    CHECK(run.losses().empty());
    check_left(run);
    run.leave_unseen("cuCtxSynchronize");
    CHECK(run.losses() == LossCounts{{"ends_unmatched", 1}});
    CHECK(run.report().empty());
}

TEST_CASE("failed waits in both layers", "[bpf][cudasync]")
{
    need_bpf();
    FakeRun run("cudasync --by api,wait --api both -x");
    make_calls(run);
    check_rows(run.report(), "-x both",
               {{"cuCtxSynchronize", {2, 0, 2}},
                {"cuStreamQuery", {1, 0, 1}},
                {"cudaDeviceSynchronize", {1, 0, 1}},
                {"cudaEventQuery", {1, 0, 1}}});
    CHECK(run.losses().empty());
}

TEST_CASE("waits in both layers, by stream and thread, in a table that is too small", "[bpf][cudasync]")
{
    need_bpf();
    FakeRun run("cudasync --by api,wait,stream,thread,device --api both --table-rows 16");
    make_calls(run);
    check_rows(run.report(), "both",
               {{"cuCtxSynchronize", {3, 0, 2}},
                {"cuMemcpyHtoD_v2", {1, 0, 0}},
                {"cuStreamQuery", {3, 1, 1}},
                {"cudaDeviceSynchronize", {1, 0, 1}},
                {"cudaMemcpy", {2, 0, 0}},
                {"cudaFree", {1, 0, 0}},
                {"cudaEventQuery", {2, 1, 1}}});
    check_in_flight(run, true);

    constexpr uint64_t streams = 100;
    std::map<std::pair<uint32_t, std::string>, Outcomes> wanted, counted;
    const auto call_streams = [&] {
        for (uint64_t i = 0; i < 3 * streams; i++) {
            run.call("cuStreamSynchronize", {{ARG_STREAM, i % streams}}, i < streams ? launch_failed : 0);
            Outcomes& sums = wanted[{gettid(), hex(i % streams)}];
            sums[0]++;
            sums[2] += i < streams;
        }
    };
    const Clock around;
    call_streams();
    uint64_t total = 0;
    std::thread other([&] {
        call_streams();
        const uint64_t most = around.elapsed();
        for (const json& row : run.report()) {
            Outcomes& sums = counted[{row["tid"], row["stream"]}];
            sums[0] += row["calls"].get<uint64_t>();
            sums[2] += row["errors"].get<uint64_t>();
            total += row["total_ns"].get<uint64_t>();
            CHECK(row["threads"] == 1);
        }
        CHECK(total <= most);
    });
    other.join();
    CHECK(total > 0);
    CHECK(counted == wanted);
    CHECK(run.losses().empty());
}

TEST_CASE("-l leaves shorter waits out of histograms, lines and layers", "[bpf][cudasync]")
{
    need_bpf();
    const auto calls = [](FakeRun& run, std::string_view symbol) {
        Bounds bounds;
        run.call(symbol);
        run.call("cudaStreamQuery", {}, not_ready);
        for (int i = 0; i < 3; i++)
            timed_call(run, bounds, 3100, symbol);
        return bounds;
    };
    FakeRun histogram("cudasync -H duration --by wait -l 3ms");
    const Bounds all = calls(histogram, "cuStreamSynchronize");
    const json record = only(histogram.report());
    CHECK(record["wait"] == "stream");
    CHECK(record["total"] == 3);
    CHECK(record["unit"] == "usecs");
    CHECK(record["measure"] == "duration");
    uint64_t count = 0;
    for (const json& bucket : record["buckets"]) {
        CHECK(bucket["high"] >= 3100);
        CHECK(bucket["low"] <= all.high / 1000);
        count += bucket["count"].get<uint64_t>();
    }
    CHECK(count == 3);

    FakeRun lines("cudasync -e -l 3ms --api runtime");
    const Bounds bounds = calls(lines, "cudaStreamSynchronize");
    lines.enter("cudaStreamSynchronize");
    lines.call("cuStreamSynchronize"); // of another layer
    lines.leave();
    uint64_t sum = 0;
    const std::vector<json> events = lines.report();
    CHECK(events.size() == 3);
    for (const json& event : events) {
        CHECK(event["function"] == "cudaStreamSynchronize");
        CHECK(event["latency_ns"] >= 3'100'000);
        sum += event["latency_ns"].get<uint64_t>();
    }
    bounds.check(sum);
}
