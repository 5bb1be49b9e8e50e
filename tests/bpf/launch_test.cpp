// SPDX-License-Identifier: Apache-2.0
// Launches: what the kernel side counts for each function, and how calls nest, fail and get lost.
#include "tests/bpf/compiled_calls.hpp"
#include "tests/bpf/fake_run.hpp"
#include "tests/unit/attach/bpf_here.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

using namespace gpusnoop;

namespace {

std::string_view layer_of(Library library)
{
    return library == Library::runtime ? "runtime" : library == Library::hip ? "hip" : "driver";
}

std::string hex(uint64_t value)
{
    return fmt::format("{:#x}", value);
}

json xyz(const std::map<int, uint64_t>& passed, argument first)
{
    json three = json::array();
    for (int i = 0; i < 3; i++) // legacy functions launch blocks of unknown size in grids of up to two dimensions
        three.push_back(passed.contains(first + i) ? passed.at(first + i) : 1);
    return three;
}

uint64_t value_or(const std::map<int, uint64_t>& passed, argument which, uint64_t otherwise)
{
    return passed.contains(which) ? passed.at(which) : otherwise;
}

// A launch of `kernel` with a grid of `blocks` blocks.
Arguments launch_of(uint64_t kernel, uint64_t blocks = 1)
{
    return {{ARG_FUNC, kernel}, {ARG_GRID_X, blocks}, {ARG_GRID_Y, 1}, {ARG_GRID_Z, 1}, {ARG_BLOCK_X, 64},
            {ARG_BLOCK_Y, 1},   {ARG_BLOCK_Z, 1},     {ARG_SMEM, 0},   {ARG_STREAM, 0}};
}

} // namespace

TEST_CASE("every launch function is counted with the arguments that a compiled call passed", "[bpf][cudalaunch]")
{
    need_bpf();
    FakeRun run("cudalaunch -e --api both");
    for (const CompiledCall& call : compiled_calls(run, launch_calls)) {
        INFO(call.probe.symbol);
        run.call(call.probe, *call.call);
        const std::vector<json> lines = run.report();
        REQUIRE(lines.size() == call.passed.size());
        for (size_t i = 0; i < lines.size(); i++) {
            const auto& passed = call.passed[i];
            json line = lines[i];
            CHECK(line["function"] == call.probe.symbol);
            CHECK(line["layer"] == layer_of(call.probe.library));
            CHECK(line["vendor"] == (call.probe.library == Library::hip ? "amd" : "nvidia"));
            CHECK(line["handle"] == hex(passed.at(ARG_FUNC)));
            CHECK(line["stream"] == hex(value_or(passed, ARG_STREAM, 0)));
            if (call.probe.row.counted_as != KIND_LAUNCH)
                continue;
            CHECK(line["shared_memory_bytes"] == value_or(passed, ARG_SMEM, 0));
            CHECK(line["block"] == (passed.contains(ARG_BLOCK_X) ? xyz(passed, ARG_BLOCK_X) : json()));
            if (call.probe.row.kind != KIND_LAUNCH_ITEMS)
                CHECK(line["grid"] == xyz(passed, ARG_GRID_X));
        }
    }
    CHECK(run.losses().empty());
}

TEST_CASE("a driver call inside a runtime call counts once in each layer", "[bpf][cudalaunch]")
{
    need_bpf();
    struct Case {
        std::string_view api;
        uint64_t driver, runtime;
    };
    for (const auto& [api, driver, runtime] : {Case{"driver", 2, 0}, Case{"runtime", 0, 1}, Case{"both", 1, 1}}) {
        INFO(api);
        FakeRun run(fmt::format("cudalaunch --by kernel --api {}", api));
        run.enter("cudaLaunchKernel", launch_of(0x1000));
        run.call("cuLaunchKernel", launch_of(0x2000));
        run.leave();
        run.call("cuLaunchKernel", launch_of(0x2000));
        std::map<std::string, uint64_t> launches;
        for (json row : run.report())
            launches[row["handle"]] += row["launches"].get<uint64_t>();
        CHECK(launches["0x2000"] == driver);
        CHECK(launches["0x1000"] == runtime);
        CHECK(run.losses().empty());
    }
}

TEST_CASE("results and latencies are those of the call that returned them", "[bpf][cudalaunch]")
{
    need_bpf();
    FakeRun run("cudalaunch --by kernel -l");
    run.call("cuLaunchKernel", launch_of(1));
    run.call("cuLaunchKernel", launch_of(1), 719);
    run.enter("cuLaunchKernel", launch_of(2)); // a host function of the driver may launch, too
    run.call("cuLaunchKernelEx", {{ARG_FUNC, 3}}, 2);
    run.leave();
    std::map<std::string, std::pair<uint64_t, uint64_t>> counts; // launches and errors
    for (json row : run.report()) {
        counts[row["handle"]] = {row["launches"], row["errors"]};
        CHECK(row["latency_max_ns"] > 0);
        CHECK(row["latency_total_ns"] >= row["latency_max_ns"]);
    }
    CHECK(counts == decltype(counts){{"0x1", {2, 1}}, {"0x2", {1, 0}}, {"0x3", {1, 1}}});
    CHECK(run.losses().empty());
}

TEST_CASE("a call that was left, or whose entry was not seen, is a loss", "[bpf][cudalaunch]")
{
    need_bpf();
    FakeRun run("cudalaunch --by kernel -l");
    run.enter("cuLaunchKernel", launch_of(1));
    run.jump_out();
    run.call("cuLaunchKernel", launch_of(2));
    CHECK(run.losses() == std::map<std::string, uint64_t>{{"calls_left", 1}});
    run.leave_unseen("cuLaunchKernel");
    CHECK(run.losses() == std::map<std::string, uint64_t>{{"ends_unmatched", 1}});
    CHECK(run.report().size() == 1);
}

TEST_CASE("a launch whose arguments are unreadable is counted, and its size is unknown", "[bpf][cudalaunch]")
{
    need_bpf();
    FakeRun run("cudalaunch --by kernel");
    run.call("cuLaunchKernel", launch_of(1, 5));
    run.break_memory();
    run.call("cuLaunchKernelEx", {{ARG_FUNC, 2}});
    std::vector<json> rows = run.report();
    REQUIRE(rows.size() == 2);
    for (json& row : rows) {
        CHECK(row["launches"] == 1);
        CHECK(row.contains("grid") == (row["handle"] == "0x1"));
    }
    CHECK(run.losses() == std::map<std::string, uint64_t>{{"arguments_unreadable", 1}});
}
