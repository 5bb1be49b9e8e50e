// SPDX-License-Identifier: Apache-2.0
// Launches: what the kernel side counts for each function, and how calls nest, fail and get lost.
#include "base/clock.hpp"
#include "tests/bpf/compiled_calls.hpp"
#include "tests/bpf/fake_run.hpp"
#include "tests/bpf/graph_script.hpp"
#include "tests/unit/attach/bpf_here.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <set>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>

using namespace gpusnoop;
using namespace std::chrono_literals;

namespace {

using Counts = std::map<std::string, uint64_t>;

std::string_view layer_of(Library library)
{
    return library == Library::runtime ? "runtime" : library == Library::hip ? "hip" : "driver";
}

std::string comm()
{
    std::array<char, 16> name{};
    prctl(PR_GET_NAME, name.data());
    return name.data();
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

// Blocks of a grid that the caller gave in items, of which the last block may have fewer.
json blocks_of(const std::map<int, uint64_t>& passed)
{
    json three = json::array();
    for (int i = 0; i < 3; i++)
        three.push_back((passed.at(ARG_GRID_X + i) + passed.at(ARG_BLOCK_X + i) - 1) / passed.at(ARG_BLOCK_X + i));
    return three;
}

uint64_t value_or(const std::map<int, uint64_t>& passed, argument which, uint64_t otherwise)
{
    return passed.contains(which) ? passed.at(which) : otherwise;
}

// A launch of `kernel` with a grid of `blocks` blocks.
Arguments launch_of(uint64_t kernel, uint64_t blocks = 1, uint64_t threads = 64)
{
    return {{ARG_FUNC, kernel}, {ARG_GRID_X, blocks}, {ARG_GRID_Y, 1}, {ARG_GRID_Z, 1}, {ARG_BLOCK_X, threads},
            {ARG_BLOCK_Y, 1},   {ARG_BLOCK_Z, 1},     {ARG_SMEM, 0},   {ARG_STREAM, 0}};
}

uint64_t address_of(FakeRun& run, uint64_t word)
{
    return reinterpret_cast<uint64_t>(run.memory({word}));
}

// Adds up figures of rows. `keys`: the JSON keys that name a sum; `figures`: the keys whose values are added.
json sums(const std::vector<json>& rows, std::initializer_list<const char*> keys,
          std::initializer_list<const char*> figures)
{
    Counts all;
    for (const json& row : rows)
        for (const char* figure : figures) {
            std::string name;
            for (const char* key : keys)
                name += !row.contains(key)     ? "- "
                        : row[key].is_string() ? row[key].get<std::string>() + " "
                                               : row[key].dump() + " ";
            if (const uint64_t value = row.value(figure, uint64_t{0}))
                all[name + figure] += value;
        }
    return all;
}

// First digit of the handles that play_layers() passes in each layer.
const std::map<std::string, uint64_t> layer_numbers = {{"runtime", 1}, {"driver", 2}, {"hip", 3}};

// Nested calls of the runtime and the driver, and calls that could be taken for nested ones.
void play_layers(FakeRun& run)
{
    const auto nested = [&](uint64_t above, uint64_t below, uint64_t result = 0) {
        run.enter("cudaLaunchKernel", launch_of(above));
        run.call("cuLaunchKernel", launch_of(below), result);
        run.leave(result);
    };
    for (int i = 0; i < 3; i++)
        nested(0x10, 0x20);
    nested(0x13, 0x24, 719);
    run.call("cuLaunchKernel", launch_of(0x21));
    run.call("cuLaunchKernel", launch_of(0x21), 700);
    // runtime calls that fail before they call the driver, then driver calls at the same place and deeper in the stack
    run.call("cudaLaunchKernel", launch_of(0x11), 35);
    run.call("cuLaunchKernel", launch_of(0x22));
    run.call("cudaLaunchKernel", launch_of(0x11), 98);
    run.enter("ncclAllReduce");
    run.enter("ncclAllReduce");
    run.call("cuLaunchKernelEx", {{ARG_FUNC, 0x23}});
    run.leave();
    run.leave();
    // another thread launches during a runtime call, which itself launches a second kernel, for example from a callback
    run.enter("cudaLaunchKernelExC", {{ARG_FUNC, 0x14}});
    std::thread([&] { run.call("cuLaunchKernel", launch_of(0x25)); }).join();
    run.call("cuLaunchKernelEx", {{ARG_FUNC, 0x26}});
    run.call("cuLaunchKernel", launch_of(0x27));
    run.leave();
    run.enter("cudaLaunchCooperativeKernelMultiDevice", {{ARG_COUNT, 1}, {ARG_FUNC, 0x15}});
    run.call("cuLaunchCooperativeKernelMultiDevice", {{ARG_COUNT, 1}, {ARG_FUNC, 0x28}});
    run.leave();
    run.enter("cudaGraphLaunch", {{ARG_FUNC, 0x16}});
    run.call("cuGraphLaunch", {{ARG_FUNC, 0x29}});
    run.leave();
    run.enter("cudaLaunchHostFunc", {{ARG_FUNC, 0x17}});
    run.call("cuLaunchHostFunc", {{ARG_FUNC, 0x2a}});
    run.leave();
    run.call("hipLaunchKernel", launch_of(0x30));
}

const Counts of_runtime = {{"0x10 launches", 3},      {"0x11 launches", 2}, {"0x13 launches", 1},
                           {"0x14 launches", 1},      {"0x15 launches", 1}, {"0x16 graph_launches", 1},
                           {"0x17 host_functions", 1}};
const Counts inside_runtime = {{"0x20 launches", 3}, {"0x24 launches", 1},       {"0x26 launches", 1},
                               {"0x28 launches", 1}, {"0x29 graph_launches", 1}, {"0x2a host_functions", 1}};
const Counts only_driver = {{"0x21 launches", 2}, {"0x22 launches", 1}, {"0x23 launches", 1},
                            {"0x25 launches", 1}, {"0x27 launches", 1}, {"0x30 launches", 1}};
const Counts hip = {{"0x30 launches", 1}};
const Counts errors_above = {{"0x11 errors", 2}, {"0x13 errors", 1}};
const Counts errors_below = {{"0x24 errors", 1}}, errors_of_driver = {{"0x21 errors", 1}};

Counts all_of(std::initializer_list<Counts> counts)
{
    Counts all;
    for (Counts each : counts)
        all.merge(each);
    return all;
}

} // namespace

TEST_CASE("every launch function is counted with the arguments that a compiled call passed", "[bpf][cudalaunch]")
{
    need_bpf();
    for (const bool returns : {false, true}) {
        FakeRun& run = shared_run(returns ? "cudalaunch -e -l --api both" : "cudalaunch -e --api both");
        for (const CompiledCall& call : compiled_calls(run, launch_calls)) {
            INFO(call.probe.symbol << (returns ? ", -l" : ""));
            for (const int result : {0, 719}) {
                uint64_t before = clock_ns(CLOCK_MONOTONIC);
                run.call(call.probe, *call.call, result);
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
                    CHECK(line["captured"] == 0);
                    CHECK((line["pid"] == getpid() && line["tid"] == gettid() && line["comm"] == comm()));
                    CHECK((line["time_ns"] > before && line["time_ns"] < clock_ns(CLOCK_MONOTONIC)));
                    CHECK((returns ? line["result_code"] == result : !line.contains("result_code")));
                    CHECK(line.contains("latency_ns") == returns);
                    if (call.probe.row.counted_as != KIND_LAUNCH) {
                        CHECK(!line.contains("grid"));
                        continue;
                    }
                    CHECK(line["shared_memory_bytes"] == value_or(passed, ARG_SMEM, 0));
                    CHECK(line["block"] == (passed.contains(ARG_BLOCK_X) ? xyz(passed, ARG_BLOCK_X) : json()));
                    const bool items = call.probe.symbol.find("ExtModule") != std::string::npos ||
                                       call.probe.symbol.find("HccModule") != std::string::npos;
                    CHECK(line["grid"] == (items ? blocks_of(passed) : xyz(passed, ARG_GRID_X)));
                }
            }
        }
        CHECK(run.losses().empty());
    }
}

TEST_CASE("every function that begins, extends or ends a capture decides which launches are captured",
          "[bpf][cudalaunch]")
{
    need_bpf();
    FakeRun& run = shared_run("cudalaunch -e --api both");
    constexpr CallSet all = calls_of({KIND_CAPTURE_BEGIN, KIND_CAPTURE_END, KIND_STREAM_NEW, KIND_STREAM_DESTROY,
                                      KIND_EVENT_RECORD, KIND_EVENT_WAIT, KIND_EVENT_DESTROY});
    // whether a launch on stream 16, and one on stream 17, is captured
    const auto captured = [&] {
        run.call("cuLaunchKernel", {{ARG_STREAM, 16}});
        run.call("cuLaunchKernel", {{ARG_STREAM, 17}});
        std::string all_lines;
        for (const json& line : run.report())
            all_lines += line["captured"] == 1 ? "yes " : "no ";
        return all_lines;
    };
    const auto begin = [&](uint64_t stream) { run.call("cuStreamBeginCapture_v2", {{ARG_STREAM, stream}}); };
    const auto end = [&](uint64_t stream) {
        run.call("cuStreamEndCapture", {{ARG_STREAM, stream}, {ARG_OUT, address_of(run, 0)}});
    };
    size_t tested = 0;
    for (CompiledCall& call : compiled_calls(run, all)) {
        const std::string& function = call.probe.symbol;
        INFO(function);
        const auto calls = [&](uint64_t result = 0) { run.call(call.probe, *call.call, result); };
        const auto is = [&](std::string_view part) { return function.find(part) != std::string::npos; };
        if (call.passes(ARG_STREAM))
            call.pass(ARG_STREAM, 16);
        if (call.passes(ARG_HANDLE))
            call.pass(ARG_HANDLE, 0xe0);
        if (call.passes(ARG_OUT))
            call.pass(ARG_OUT, address_of(run, is("EndCapture") ? 0x7e00 : 16));
        if (is("BeginCapture")) {
            calls(1);
            CHECK(captured() == "no no ");
            calls();
            CHECK(captured() == "yes no ");
            end(16);
        } else if (is("EndCapture")) {
            begin(16);
            calls(903); // the stream joined the capture, which continues
            calls(908); // another thread began the capture
            CHECK(captured() == "yes no ");
            calls();
            CHECK(captured() == "no no ");
            begin(16);
            calls(901); // invalidated
            CHECK(captured() == "no no ");
        } else if (is("StreamDestroy")) {
            begin(16);
            calls(1);
            CHECK(captured() == "yes no ");
            run.enter(call.probe, *call.call); // the handle is reused before the call returns
            std::thread([&] { run.call("cuStreamCreate", {{ARG_OUT, address_of(run, 16)}}); }).join();
            CHECK(captured() == "no no ");
            run.leave();
            CHECK(captured() == "no no ");
        } else if (is("StreamCreate")) {
            begin(16); // the stream ended with its context
            calls(1);
            CHECK(captured() == "yes no ");
            calls();
            CHECK(captured() == "no no ");
        } else if (is("EventRecord")) {
            begin(16);
            calls();
            run.call("cuStreamWaitEvent", {{ARG_HANDLE, 0xe0}, {ARG_STREAM, 17}});
            CHECK(captured() == "yes yes ");
            end(16);
        } else if (is("WaitEvent")) {
            begin(17);
            run.call("cuEventRecord", {{ARG_HANDLE, 0xe0}, {ARG_STREAM, 17}});
            calls();
            CHECK(captured() == "yes yes ");
            end(17);
        } else {
            REQUIRE(is("EventDestroy"));
            begin(17);
            run.call("cuEventRecord", {{ARG_HANDLE, 0xe0}, {ARG_STREAM, 17}});
            calls();
            run.call("cuStreamWaitEvent", {{ARG_HANDLE, 0xe0}, {ARG_STREAM, 16}});
            CHECK(captured() == "no yes ");
            end(17);
        }
        CHECK(captured() == "no no ");
        tested++;
    }
    CHECK(tested > 30);
    CHECK(run.losses().empty());
}

TEST_CASE("each mode and API counts every launch once", "[bpf][cudalaunch]")
{
    need_bpf();
    struct Case {
        std::string_view arguments;
        Counts layers;   // of play_layers()
        Counts captures; // of the script below
    };
    // A launch that fails under capture counts as a node. If results are not seen, failed launches of graphs count.
    constexpr uint64_t nodes = 3 + 1, launched = 9 + 5, failed_launches = 1;
    const Counts sums_of_script = {{"captured", 104}, {"launches", 56}, {"graph_launches", 15}, {"host_functions", 6}};
    const Counts captures = all_of({sums_of_script, {{"graph_kernels", (launched + failed_launches) * nodes}}});
    const Counts with_errors = all_of({sums_of_script, {{"errors", 3}, {"graph_kernels", launched * nodes}}});
    const Counts failed = {{"captured", 1}, {"graph_launches", 1}, {"launches", 1}, {"errors", 3}};
    for (const auto& [arguments, layers, captures_of] :
         {Case{"", all_of({inside_runtime, only_driver}), captures},
          {" --api runtime", all_of({of_runtime, hip}), {}},
          {" --api both --names full --ring-mb 1", all_of({of_runtime, only_driver}), captures},
          {" -l", all_of({inside_runtime, only_driver, errors_below, errors_of_driver}), with_errors},
          {" --api both -x",
           all_of({errors_above, errors_of_driver, {{"0x11 launches", 2}, {"0x13 launches", 1}, {"0x21 launches", 1}}}),
           failed}}) {
        INFO(arguments);
        FakeRun& run = shared_run(fmt::format("cudalaunch --by kernel,api{}", arguments));
        play_layers(run);
        GraphScript(run).play("begin 16; kernel on=16 3; kernel on=17 2; kernel on=16 result=719; end 16 G;"
                              "instantiate G X; launch X 9 on=16; launch X result=700; kernel on=16 3; kernel result=1;"
                              "host on=16 6; begin 17; kernel on=17 100; kernel on=16 50; end 17 H; launch X 5");
        std::vector<json> rows = run.report(), of_script;
        const auto number = [](const json& row) { return std::stoull(row["handle"].get<std::string>(), nullptr, 16); };
        std::erase_if(rows, [&](const json& row) {
            if (number(row) > 0x3f)
                of_script.push_back(row);
            return number(row) > 0x3f;
        });
        CHECK(sums(rows, {"handle"}, {"launches", "graph_launches", "host_functions", "errors"}) == json(layers));
        CHECK(sums(of_script, {},
                   {"launches", "graph_launches", "graph_kernels", "host_functions", "captured", "errors"}) ==
              json(captures_of));
        for (const json& row : rows)
            if (row.contains("layer"))
                CHECK(layer_numbers.at(row["layer"]) == number(row) / 16);
        CHECK(run.losses().empty());
    }
}

TEST_CASE("rows of kernels have their launches, errors, latencies and sizes", "[bpf][cudalaunch]")
{
    need_bpf();
    for (const bool returns : {false, true}) {
        INFO((returns ? "-l" : "without -l"));
        FakeRun& run = shared_run(returns ? "cudalaunch --by kernel,api -l" : "cudalaunch --by kernel,api");
        run.call("cuLaunchKernel", launch_of(1, 5, 128), 719);
        run.call("cuLaunchKernel", launch_of(1, 5, 128));
        for (const uint64_t blocks : {30, 30, 50})
            run.call("cuLaunchKernel", launch_of(11, blocks, blocks));
        run.call("cuLaunchKernel", {{ARG_FUNC, 10},
                                    {ARG_GRID_X, 70000},
                                    {ARG_GRID_Y, 3},
                                    {ARG_GRID_Z, 2},
                                    {ARG_BLOCK_X, 8},
                                    {ARG_BLOCK_Y, 4},
                                    {ARG_BLOCK_Z, 2},
                                    {ARG_SMEM, 512}});
        run.enter("cuLaunchKernel", launch_of(2)); // a host function of the driver may launch, too
        run.call("cuLaunchKernelEx", {{ARG_FUNC, 3}}, 2);
        std::this_thread::sleep_for(2ms);
        run.leave();
        // legacy launches: the sizes of blocks and of shared memory are set before
        run.call("cuLaunchGrid", {{ARG_FUNC, 4}, {ARG_GRID_X, 31}, {ARG_GRID_Y, 2}});
        run.call("cuFuncSetBlockShape", {{ARG_HANDLE, 5}, {ARG_BLOCK_X, 5}, {ARG_BLOCK_Y, 4}, {ARG_BLOCK_Z, 3}});
        run.call("cuFuncSetSharedSize", {{ARG_HANDLE, 5}, {ARG_SMEM, 77}});
        run.call("cuLaunch", {{ARG_FUNC, 5}});
        run.call("cuFuncSetSharedSize", {{ARG_HANDLE, 6}, {ARG_SMEM, 9}});
        run.call("cuLaunchGridAsync", {{ARG_FUNC, 6}, {ARG_GRID_X, 7}, {ARG_GRID_Y, 6}});
        run.break_memory();
        run.call("cuLaunchKernelEx", {{ARG_FUNC, 7}});
        std::map<std::string, json> rows;
        for (const json& row : run.report())
            rows[row["handle"]] = row;
        struct Row {
            const char* handle;
            uint64_t launches, errors;
            json grid, block, smem;
        };
        const Row wanted[] = {
            {"0x1", 2, 1, {5, 1, 1}, {128, 1, 1}, 0}, {"0xa", 1, 0, {70000, 3, 2}, {8, 4, 2}, 512},
            {"0x2", 1, 0, {1, 1, 1}, {64, 1, 1}, 0},  {"0x3", 1, 1, {0, 0, 0}, {}, 0},
            {"0x4", 1, 0, {31, 2, 1}, {}, 0},         {"0x5", 1, 0, {1, 1, 1}, {5, 4, 3}, 77},
            {"0x6", 1, 0, {7, 6, 1}, {1, 1, 1}, 9},   {"0x7", 1, 0, {}, {}, {}},
        };
        CHECK(rows.size() == std::size(wanted) + 1);
        for (const Row& each : wanted) {
            INFO(each.handle);
            const json& row = rows[each.handle];
            CHECK(row["launches"] == each.launches);
            CHECK(row.value("errors", json()) == (returns ? json(each.errors) : json()));
            CHECK(row.value("grid", json()) == each.grid);
            CHECK(row.value("block", json()) == each.block);
            CHECK(row.value("shared_memory_bytes", json()) == each.smem);
            CHECK(row.contains("latency_max_ns") == returns);
            if (returns)
                CHECK(row["latency_max_ns"] > (each.handle == std::string_view("0x2") ? 2'000'000 : 0));
            if (returns)
                CHECK((row["latency_total_ns"] >= row["latency_max_ns"] &&
                       row["latency_p50_ns"] <= row["latency_max_ns"]));
        }
        for (const char* measure : {"blocks", "threads"}) { // percentiles are the launch's size, or the bucket's bound
            CHECK(rows["0xa"][fmt::format("{}_p95", measure)] == (measure[0] == 'b' ? 420'000 : 64));
            CHECK((rows["0xb"][fmt::format("{}_p50", measure)] == 30));
            CHECK((rows["0xb"][fmt::format("{}_p95", measure)] >= 48 &&
                   rows["0xb"][fmt::format("{}_p95", measure)] <= 50));
        }
        CHECK(run.losses() == std::map<std::string, uint64_t>{{"arguments_unreadable", 1}});

        // calls that were left, or whose entry was not seen: they count at the entry unless returns are traced
        run.enter("cuLaunchKernel", launch_of(8));
        run.jump_out();
        run.enter("ncclAllReduce");
        run.enter("cuLaunchKernel", launch_of(8));
        run.jump_out();
        run.jump_out();
        run.call("cuLaunchKernel", launch_of(8));
        CHECK(sums(run.report(), {"handle"}, {"launches"}) == json{{"0x8 launches", returns ? 1 : 3}});
        const Counts left = {{"calls_left", 2}}, unmatched = {{"ends_unmatched", 1}};
        CHECK(run.losses() == (returns ? left : Counts()));
        if (returns) {
            run.leave_unseen("cuLaunchKernel");
            CHECK(run.losses() == unmatched);
        }
        // more nested calls than a thread can have in flight
        for (int i = 0; i < 6; i++)
            run.enter("cuLaunchKernel", launch_of(9));
        for (int i = 0; i < 6; i++)
            run.leave();
        CHECK(sums(run.report(), {"handle"}, {"launches"}) == json{{"0x9 launches", returns ? 4 : 6}});
        const Counts nested = {{"starts_lost", 2}, {"ends_unmatched", 2}};
        CHECK(run.losses() == (returns ? nested : Counts()));
    }
}

TEST_CASE("a launch counts for the device of the thread's context", "[bpf][cudalaunch]")
{
    need_bpf();
    struct Step {
        std::string_view function;
        Arguments arguments;
        uint64_t made;      // handle that the call returns
        json device, other; // of launches after the call: by the driver, and by HIP
        uint64_t result = 0;
    };
    constexpr uint64_t a = 0xa0, b = 0xb0, c = 0xc0, d = 0xd0, e = 0xe0;
    const Step steps[] = {
        {"cuInit", {}, 0, {}, {}},
        {"cuCtxCreate", {{ARG_DEVICE, 2}}, a, 2, {}},
        {"cuCtxCreate_v2", {{ARG_DEVICE, 6}}, b, 2, {}, 2},
        {"cuCtxCreate_v2", {{ARG_DEVICE, 5}}, b, 5, {}},
        {"cuCtxPopCurrent_v2", {}, b, 2, {}},
        {"cuCtxPushCurrent_v2", {{ARG_HANDLE, b}}, 0, 5, {}},
        {"cuCtxSetCurrent", {{ARG_HANDLE, a}}, 0, 2, {}},
        {"cuCtxCreate_v3", {{ARG_DEVICE, 7}}, c, 7, {}},
        {"cuCtxPushCurrent", {{ARG_HANDLE, b}}, 0, 5, {}},
        {"cuCtxPopCurrent", {}, b, 7, {}},
        {"cuCtxDestroy_v2", {{ARG_HANDLE, c}}, 0, 7, {}, 1},
        {"cuCtxDestroy_v2", {{ARG_HANDLE, c}}, 0, 2, {}},
        {"cuCtxSetCurrent", {{ARG_HANDLE, 0}}, 0, 2, {}},   // the context below is the same
        {"cuCtxPushCurrent", {{ARG_HANDLE, c}}, 0, {}, {}}, // its handle is not valid
        {"cuCtxCreate_v4", {{ARG_DEVICE, 1}}, c, 1, {}},    // a new context with the handle
        {"cuDevicePrimaryCtxRetain", {{ARG_DEVICE, 4}}, d, 1, {}},
        {"cuCtxSetCurrent", {{ARG_HANDLE, d}}, 0, 4, {}},
        {"cuDevicePrimaryCtxReset", {{ARG_DEVICE, 4}}, 0, 4, {}},
        {"cuCtxSetCurrent", {{ARG_HANDLE, d}}, 0, {}, {}},
        {"cuCtxDestroy", {{ARG_HANDLE, a}}, 0, {}, {}},
        {"cudaSetDevice", {{ARG_DEVICE, 3}}, 0, 3, {}},
        {"cudaSetDevice", {{ARG_DEVICE, 6}}, 0, 3, {}, 101},
        {"hipSetDevice", {{ARG_DEVICE, 3}}, 0, 3, 3},
        {"hipSetDevice", {{ARG_DEVICE, 7}}, 0, 3, 3, 101},
        {"hipDevicePrimaryCtxRetain", {{ARG_DEVICE, 1}}, c, 3, 3},
        {"hipCtxSetCurrent", {{ARG_HANDLE, c}}, 0, 3, 1},
        {"hipCtxCreate", {{ARG_DEVICE, 2}}, e, 3, 1}, // is not current
        {"hipCtxPushCurrent", {{ARG_HANDLE, e}}, 0, 3, 2},
        {"hipCtxSetCurrent", {{ARG_HANDLE, 0x77}}, 0, 3, {}},
        {"hipSetDevice", {{ARG_DEVICE, 5}}, 0, 3, 5},
    };
    FakeRun run(fmt::format("cudalaunch --by kernel,device,thread,stream -l -n {}", comm()));
    uint64_t kernel = 0;
    std::map<std::string, json> wanted; // device by kernel
    for (Step step : steps) {
        if (step.made)
            step.arguments[ARG_OUT] = address_of(run, step.made);
        run.call(step.function, step.arguments, step.result);
        run.call("cuLaunchKernel", launch_of(++kernel));
        wanted[hex(kernel)] = step.device;
        run.call("hipLaunchKernel", launch_of(++kernel));
        wanted[hex(kernel)] = step.other;
    }
    // a primary context ends with its last holder, if all of them are known
    run.see_from_start();
    struct Held {
        std::string_view function;
        Arguments arguments;
        json device;
    };
    for (const auto& [function, arguments, device] : {Held{"cuDevicePrimaryCtxRetain", {{ARG_DEVICE, 6}}, 3},
                                                      {"cuDevicePrimaryCtxRetain", {{ARG_DEVICE, 6}}, 3},
                                                      {"cuCtxSetCurrent", {{ARG_HANDLE, 0xf0}}, 6},
                                                      {"cuDevicePrimaryCtxRelease", {{ARG_DEVICE, 6}}, 6},
                                                      {"cuCtxPushCurrent", {{ARG_HANDLE, 0xf0}}, 6},
                                                      {"cuDevicePrimaryCtxRelease_v2", {{ARG_DEVICE, 6}}, 6},
                                                      {"cuCtxPushCurrent", {{ARG_HANDLE, 0xf0}}, {}}}) {
        Arguments all = arguments;
        if (function == "cuDevicePrimaryCtxRetain")
            all[ARG_OUT] = address_of(run, 0xf0);
        run.call(function, all);
        run.call("cuLaunchKernel", launch_of(++kernel));
        wanted[hex(kernel)] = device;
    }
    const uint64_t last_of_main = kernel;
    // contexts that are stacked more deeply than the tool remembers become unknown
    std::thread([&] {
        for (uint64_t i = 0; i < 12; i++)
            run.call("cuCtxCreate_v2", {{ARG_DEVICE, i}, {ARG_OUT, address_of(run, 0x1000 + i)}});
        for (const json& device : {json(11), json(), json(), json(), json(), json(6), json(5), json(4), json(3),
                                   json(2), json(1), json(0), json()}) {
            run.call("cuLaunchKernel", launch_of(++kernel));
            wanted[hex(kernel)] = device;
            run.call("cuCtxPopCurrent_v2", {{ARG_OUT, 0}});
        }
    }).join();
    // calls of processes with another name are neither counted nor lost
    const std::string name = comm();
    prctl(PR_SET_NAME, "hay");
    run.call("cuLaunchKernel", launch_of(0x9999));
    run.leave_unseen("cuLaunchKernel");
    prctl(PR_SET_NAME, name.c_str());
    // each thread has its own device
    std::thread([&] { run.call("cuLaunchKernel", launch_of(++kernel)); }).join();
    wanted[hex(kernel)] = {};
    std::map<std::string, json> devices;
    for (const json& row : run.report()) {
        devices[row["handle"]] = row.value("device", json());
        CHECK((row["tid"] == getpid()) == (std::stoul(row["handle"].get<std::string>(), nullptr, 16) <= last_of_main));
    }
    for (const auto& [handle, device] : wanted) {
        INFO("launch " << handle);
        CHECK(devices[handle] == device);
    }
    CHECK(devices.size() == wanted.size());
    CHECK(run.losses().empty());
}

TEST_CASE("kernels that graphs start are counted from the nodes of the graphs", "[bpf][cudalaunch]")
{
    need_bpf();
    // X starts 8 kernels, Y 12, and X again 12 once it is made from another graph. One launch fails.
    constexpr uint64_t behind = 100 * 8 + 7 * 12 + 2 * 12, unknown = 13;
    FakeRun& run = shared_run("cudalaunch --by kernel,api -l");
    GraphScript(run).play(
        "begin 16; kernel on=16 5; record E 16; wait E 17; kernel on=17 3; record F 17; wait F 16; end 16 G;"
        "instantiate G X; launch X 100; create H; add H kernel 4; add H memset 3; add H child of=G; instantiate H Y;"
        "launch Y 7; launch X 9 result=700; kernel 11; drop X; instantiate H X; launch X 2;"
        "old Z; launch Z 13"); // instantiated before tracing
    CHECK(sums(run.report(), {},
               {"launches", "captured", "graph_launches", "graph_kernels", "graph_launches_unknown", "errors"}) ==
          json(Counts{{"launches", 11},
                      {"captured", 8},
                      {"graph_launches", 100 + 7 + 9 + 2 + unknown},
                      {"graph_kernels", behind},
                      {"graph_launches_unknown", unknown},
                      {"errors", 9}}));
    CHECK(run.losses().empty());
}

TEST_CASE("histograms have the sizes of grids, and the gaps between launches", "[bpf][cudalaunch]")
{
    need_bpf();
    FakeRun sizes("cudalaunch -H grid"), gaps("cudalaunch -H gap");
    const auto launch = [&](uint64_t x, uint64_t y, uint64_t z, uint64_t result = 0) {
        Arguments shape = launch_of(1, x);
        shape[ARG_GRID_Y] = y;
        shape[ARG_GRID_Z] = z;
        sizes.call("cuLaunchKernel", shape, result);
    };
    launch(1, 1, 1);
    launch(1, 1, 1, 719); // counts, too
    launch(15, 1, 1);
    launch(16, 3, 1);
    launch(20, 3, 2);
    launch(1000, 1000, 1);
    launch(2147483647, 65535, 65535);
    sizes.call("cuGraphLaunch", {{ARG_FUNC, 1}}); // has no size
    sizes.call("cuLaunchHostFunc", {{ARG_FUNC, 1}});
    const auto record_of = [](FakeRun& run) {
        const std::vector<json> records = run.report();
        REQUIRE(records.size() == 1);
        CHECK(run.losses().empty());
        return records[0];
    };
    const json of_sizes = record_of(sizes);
    Counts launches; // by the bounds of their bucket
    for (const json& bucket : of_sizes["buckets"])
        if (bucket["count"] > 0)
            launches[bucket["low"].dump() + "-" + bucket["high"].dump()] = bucket["count"];
    CHECK(json(launches) == json(Counts{{"1-1", 2},
                                        {"15-15", 1},
                                        {"48-51", 1},
                                        {"120-127", 1},
                                        {"983040-1048575", 1},
                                        {"8646911284551352320-9223372036854775807", 1}}));
    CHECK(of_sizes["total"] == 7);
    CHECK((of_sizes["measure"] == "grid" && of_sizes["unit"] == "blocks"));

    const auto slow = [&] {
        gaps.enter("cuLaunchKernel", launch_of(1));
        std::this_thread::sleep_for(2ms);
        gaps.leave();
    };
    slow();
    std::thread(slow).join(); // a gap is between launches of the same thread
    slow();
    slow();
    const json of_gaps = record_of(gaps);
    CHECK((of_gaps["measure"] == "gap" && of_gaps["unit"] == "usecs"));
    CHECK(of_gaps["total"] == 2);
    for (const json& bucket : of_gaps["buckets"])
        CHECK((bucket["count"] == 0 || (bucket["high"] >= 2000 && bucket["low"] < 1'000'000)));
}

TEST_CASE("every function that names a kernel gives its name to launches", "[bpf][cudalaunch]")
{
    need_bpf();
    FakeRun& run = shared_run("cudalaunch --by kernel,api --api both --names full --ring-mb 1");
    constexpr CallSet all = calls_of({KIND_GET_FUNCTION, KIND_GET_ALIAS, KIND_REGISTER});
    std::map<std::string, std::set<std::string>> wanted; // sources of names
    uint64_t handle = 0x1000;
    const auto shown = [](const std::string& name) {
        return name.size() < 100 ? name : fmt::format("{}... ({})", name.substr(0, 8), name.size());
    };
    const auto add = [&](const std::string& name, const char* source) {
        wanted[shown(name)] = {source};
        return run.text(fmt::format("_Z{}{}v", name.size(), name));
    };
    run.call("cuModuleGetFunction", {{ARG_OUT, address_of(run, 0x77)}, {ARG_NAME, add("known", "lookup")}});
    for (CompiledCall& call : compiled_calls(run, all)) {
        const std::string& function = call.probe.symbol;
        INFO(function);
        const bool is_registration = !call.passes(ARG_OUT);
        handle += 16;
        if (call.passes(ARG_OUT))
            call.pass(ARG_OUT, address_of(run, handle));
        if (call.passes(ARG_NAME))
            call.pass(ARG_NAME,
                      add(fmt::format("by_{}_{}", function, handle), is_registration ? "registration" : "lookup"));
        if (call.passes(ARG_HANDLE))
            call.pass(ARG_HANDLE, is_registration ? handle : 0x77);
        run.call(call.probe, *call.call);
        run.call("cuLaunchKernel", launch_of(handle));
        if (!call.passes(ARG_NAME))
            wanted["known"] = {"lookup"};
    }
    CHECK(handle > 0x1000 + 10 * 16);
    for (const size_t length : {126, 127, 128, 1023, 1024, 1100, 3000}) { // records of three sizes
        run.call("__cudaRegisterFunction",
                 {{ARG_HANDLE, handle += 16}, {ARG_NAME, add(std::string(length, 'x'), "registration")}});
        run.call("cudaLaunchKernel", launch_of(handle));
    }
    // a driver handle gets the name of the runtime launch around it
    run.call("__cudaRegisterFunction", {{ARG_HANDLE, handle += 16}, {ARG_NAME, add("above", "registration")}});
    run.enter("cudaLaunchKernel", launch_of(handle));
    run.call("cuLaunchKernel", launch_of(handle + 1));
    run.leave();
    run.call("cuLaunchKernel", launch_of(handle + 1));
    wanted["above"].insert("correlation");
    // a lookup that fails
    run.call("cuModuleGetFunction", {{ARG_OUT, address_of(run, 0x78)}, {ARG_NAME, run.text("_Z6failedv")}}, 500);
    run.call("cuLaunchKernel", launch_of(0x78));
    // registrations that do not fit into the ring buffer are read from memory, if a launch needs them
    for (uint64_t i = 0; i < 3000; i++)
        run.call("__cudaRegisterFunction",
                 {{ARG_HANDLE, 0x100000 + i}, {ARG_NAME, run.text(fmt::format("_Z600k{:_<599}v", i))}});
    run.call("cudaLaunchKernel", launch_of(0x100000 + 2999));
    // names in memory that no longer exists are lost, if a launch needs them
    const size_t bytes = 4096;
    void* const page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, "_Z8unmappedv", 13);
    for (uint64_t i = 0; i < 2; i++)
        run.call("__cudaRegisterFunction", {{ARG_HANDLE, 0x200000 + i}, {ARG_NAME, reinterpret_cast<uint64_t>(page)}});
    munmap(page, bytes);
    run.call("cudaLaunchKernel", launch_of(0x200000));
    wanted[shown(fmt::format("k{:_<599}", 2999))] = {"registration"};
    wanted[""] = {""}; // of the failed lookup
    decltype(wanted) got;
    for (const json& row : run.report()) {
        std::string name = row.value("kernel", std::string());
        name.resize(std::min(name.size(), name.find('(')));
        got[shown(name)].insert(row.value("name_source", std::string()));
    }
    CHECK(json(got) == json(wanted));
    CHECK(run.losses() == Counts{{"names_lost", 1}});
}
