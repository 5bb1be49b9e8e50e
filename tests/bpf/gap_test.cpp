// SPDX-License-Identifier: Apache-2.0
// Time in calls, and gaps between launches. Calls are fake, but the programs on the scheduler's tracepoints are
// attached, so the time that these threads sleep between calls is real.
#include "base/clock.hpp"
#include "tests/bpf/compiled_calls.hpp"
#include "tests/bpf/fake_run.hpp"
#include "tests/unit/attach/bpf_here.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <thread>
#include <unistd.h>

using namespace gpusnoop;

namespace {

using LossCounts = std::map<std::string, uint64_t>;

constexpr const char* call_parts[] = {"launch_ns", "copy_ns", "wait_ns", "memory_ns", "call_ns"};
constexpr const char* other_parts[] = {"cpu_ns",   "runq_ns",   "throttled_ns", "stopped_ns", "lock_ns",
                                       "poll_ns",  "pipe_ns",   "socket_ns",    "disk_ns",    "fault_ns",
                                       "sleep_ns", "driver_ns", "child_ns",     "other_ns"};

uint64_t sum_of_parts(const json& row)
{
    uint64_t sum = 0;
    for (const char* part : call_parts)
        sum += row[part].get<uint64_t>();
    for (const char* part : other_parts)
        sum += row[part].get<uint64_t>();
    return sum;
}

void sleep_us(uint64_t us)
{
    std::this_thread::sleep_for(std::chrono::microseconds(us));
}

// The part that a function's time is added to, by its name.
std::string part_of(std::string_view name)
{
    const auto has = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
    const auto has_any = [has](std::initializer_list<std::string_view> parts) {
        return std::ranges::any_of(parts, has);
    };
    if (has("GraphAdd") && !has_any({"MemAlloc", "MemFree"}))
        return "call_ns";
    if (has_any({"Launch", "AddCallback"}))
        return "launch_ns";
    if (has_any({"Memcpy", "Memset", "Prefetch"}))
        return "copy_ns";
    if (has_any({"Synchronize", "Query", "WaitValue"}))
        return "wait_ns";
    const bool memory = has_any({"Mem", "Array", "Malloc", "Free", "HostAlloc", "HostReg", "HostUnreg", "Multicast"});
    return memory ? "memory_ns" : "call_ns";
}

Arguments kernel(uint64_t handle, uint64_t stream = 0)
{
    return {{ARG_FUNC, handle}, {ARG_STREAM, stream}};
}

} // namespace

TEST_CASE("time in a call counts for its outermost function, and the rest for the reason", "[bpf][cudagap]")
{
    need_bpf();
    struct Call {
        std::string_view outer, inner;
        const char* part;
    };
    for (const std::string_view options : {"--by thread", "--by thread --cheap"}) {
        INFO(options);
        FakeRun run(fmt::format("cudagap {}", options));
        const bool cheap = options.ends_with("cheap");
        run.call("cuInit");
        run.report();
        for (const auto& [outer, inner, part] :
             {Call{"cuLaunchKernel", "", "launch_ns"}, Call{"cuStreamSynchronize", "", "wait_ns"},
              Call{"cuLaunchHostFunc", "cuMemcpyHtoD_v2", "launch_ns"},
              Call{"cuMemAlloc_v2", "cuStreamSynchronize", "memory_ns"}}) {
            INFO(outer << ' ' << inner);
            run.enter(outer);
            const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
            if (!inner.empty())
                run.enter(inner);
            sleep_us(300); // blocked in the call
            if (!inner.empty())
                run.leave();
            const uint64_t inside = clock_ns(CLOCK_MONOTONIC) - begin;
            run.leave();
            const std::vector<json> rows = run.report();
            REQUIRE(rows.size() == 1);
            const json& row = rows[0];
            INFO(row);
            CHECK(row["tid"] == gettid());
            const uint64_t queued = cheap ? 0 : row["runq_ns"].get<uint64_t>() + row["throttled_ns"].get<uint64_t>();
            CHECK(row[part].get<uint64_t>() + queued >= inside);
            for (const char* other : call_parts)
                if (other != std::string_view(part))
                    CHECK(row[other] == 0);
            if (!cheap)
                CHECK(sum_of_parts(row) == row["wall_ns"]);
        }
        CHECK(run.losses().empty());
        run.leave_unseen("cuInit");
        CHECK(run.losses() == LossCounts{{"ends_unmatched", 1}});
        run.enter("cuStreamSynchronize");
        run.jump_out();
        run.call("cuMemcpyHtoD_v2"); // the thread is no longer in the wait
        CHECK(run.losses() == LossCounts{{"calls_left", 1}});
        run.report();
        sleep_us(300);
        const json row = run.report().at(0);
        for (const char* part : call_parts)
            CHECK(row[part] == 0);
        if (!cheap)
            CHECK(row["sleep_ns"] >= 280'000);
    }
}

TEST_CASE("every driver function that is traced counts for its part of the time", "[bpf][cudagap]")
{
    need_bpf();
    FakeRun run("cudagap --by thread");
    std::map<std::string, unsigned> functions;
    for (const CallSet& calls :
         {launch_calls, copy_calls, batch_calls, calls_of({KIND_WAIT}), alloc_calls, free_calls, handle_calls,
          lookup_calls, graph_calls, calls_of({KIND_INIT, KIND_CONTEXT_NEW, KIND_CONTEXT_CREATE, KIND_GRAPH_UPLOAD})})
        for (const CompiledCall& call : compiled_calls(run, calls)) {
            INFO(call.probe.symbol);
            run.call(call.probe, *call.call);
            const std::vector<json> rows = run.report();
            REQUIRE(rows.size() == 1);
            const std::string part = part_of(call.probe.symbol);
            for (const char* other : call_parts)
                CHECK((rows[0][other] != 0) == (other == part));
            CHECK(sum_of_parts(rows[0]) == rows[0]["wall_ns"]);
            functions[part]++;
        }
    CHECK(functions.size() == 5);
    CHECK(run.losses().empty());
}

TEST_CASE("a gap has a line with its length, parts and launches", "[bpf][cudagap]")
{
    need_bpf();
    FakeRun run("cudagap -e -l 2ms");
    run.call("cuModuleGetFunction",
             {{ARG_OUT, reinterpret_cast<uint64_t>(run.memory({0x1000}))}, {ARG_NAME, run.text("saxpy")}});
    run.call("cuLaunchKernel", kernel(0x1000));
    const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    sleep_us(2100);
    run.enter("cuStreamSynchronize");
    const uint64_t waits = clock_ns(CLOCK_MONOTONIC);
    sleep_us(1100);
    const uint64_t waited = clock_ns(CLOCK_MONOTONIC) - waits;
    run.leave();
    const uint64_t inside = clock_ns(CLOCK_MONOTONIC) - begin;
    run.call("cuGraphLaunch", {{ARG_FUNC, 0x2000}});
    run.call("cuLaunchHostFunc", {{ARG_FUNC, 0x3000}}); // after a gap that is too short
    std::vector<json> lines = run.report();
    REQUIRE(lines.size() == 1);
    const json& gap = lines[0];
    INFO(gap);
    CHECK(gap["pid"] == getpid());
    CHECK(gap["tid"] == gettid());
    CHECK(gap["gap_ns"] >= inside);
    CHECK(gap["sleep_ns"] >= 2'000'000);
    CHECK(gap["wait_ns"].get<uint64_t>() + gap["runq_ns"].get<uint64_t>() >= waited);
    CHECK(sum_of_parts(gap) == gap["gap_ns"]);
    CHECK(gap["before"] == "kernel");
    CHECK(gap["before_handle"] == "0x1000");
    CHECK(gap["before_kernel"] == "saxpy");
    CHECK(gap["before_name_source"] == "lookup");
    CHECK(gap["after"] == "graph");
    CHECK(gap["after_handle"] == "0x2000");
    CHECK(run.losses().empty());
}

TEST_CASE("each gap is in one histogram, by thread and stream, and in one interval", "[bpf][cudagap]")
{
    need_bpf();
    for (const std::string_view by : {"thread", "thread,stream"}) {
        INFO(by);
        FakeRun run(fmt::format("cudagap -H gap -N --by {}", by));
        const bool streams = by != "thread";
        const auto launches = [&run] {
            for (uint64_t i = 0; i < 20; i++) {
                run.call("cuLaunchKernel", kernel(1, 1));
                run.call("cuLaunchKernel", kernel(2, i < 15 ? 2 : 3));
            }
        };
        std::map<std::string, uint64_t> totals; // by stream
        const auto report = [&] {
            for (const json& record : run.report()) {
                INFO(record);
                CHECK(record["measure"] == "gap");
                CHECK(record["unit"] == "nsecs");
                CHECK(record.contains("tid"));
                uint64_t count = 0;
                for (const json& bucket : record["buckets"]) {
                    const uint64_t n = bucket["count"], took = sum_of_parts(bucket);
                    CHECK(bucket["low"].get<uint64_t>() * n <= took);
                    CHECK(took <= bucket["high"].get<uint64_t>() * n);
                    if (!streams)
                        CHECK(bucket["launch_ns"] == 0);
                    count += n;
                }
                CHECK(record["total"] == count);
                totals[record.value("stream", "")] += count;
            }
        };
        launches();
        report();
        launches();
        std::thread other([&] {
            launches();
            report();
        });
        other.join();
        using Totals = decltype(totals);
        // of two threads with 80 and 40 launches; per stream: 40, 30 and 10, and half as many
        CHECK(totals == (streams ? Totals{{"0x1", 39 + 19}, {"0x2", 29 + 14}, {"0x3", 9 + 4}} : Totals{{"", 79 + 39}}));
        CHECK(run.losses().empty());
    }
}
