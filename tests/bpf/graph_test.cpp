// SPDX-License-Identifier: Apache-2.0
// Graphs: their nodes, calls and handles, and captures.
#include "tests/bpf/compiled_calls.hpp"
#include "tests/bpf/fake_run.hpp"
#include "tests/bpf/graph_script.hpp"
#include "tests/unit/attach/bpf_here.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <fmt/format.h>
#include <set>
#include <sstream>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>

using namespace gpusnoop;
using namespace std::chrono_literals;

namespace {

using Strings = std::vector<std::string>;
using Lost = std::map<std::string, uint64_t>;

// A row without its handles and times: "nodes by kind; figures that are not 0".
std::string described(const json& row)
{
    std::string text;
    for (const char* kind : {"kernels", "copies", "memsets", "host_functions", "other_nodes"})
        text += (text.empty() ? "" : "/") + (row.contains(kind) ? row[kind].dump() : "?");
    for (const char* figure : {"launches", "unknown_launches", "kernels_launched", "captured", "errors", "updates",
                               "failed_updates", "uploads", "parameter_sets", "destroyed"})
        if (row.at(figure) != 0)
            text += fmt::format(" {}={}", figure, row[figure].dump());
    return text + (row.contains("update_reason") ? " " + row["update_reason"].get<std::string>() : "");
}

// Rows of the script's executable graphs, in the order of their instantiation.
Strings rows_of(const std::vector<json>& report, const GraphScript& script)
{
    std::map<uint64_t, std::string> rows;
    for (const json& row : report)
        if (script.owns(row["exec"]))
            rows[row["exec_number"]] = described(row);
    Strings all;
    for (const auto& [number, row] : rows)
        all.push_back(row);
    return all;
}

// A line of -e without times: "call graph exec kernels/copies/others result".
std::string described_line(const json& line, const GraphScript& script)
{
    const auto name = [&](const char* handle) { return script.name(line.value(handle, json())); };
    std::string text = fmt::format("{} {} {} ", line["call"].get<std::string>(), name("graph"), name("exec"));
    for (const char* kind : {"kernels", "copies", "other_nodes"})
        text += (line.contains(kind) ? line[kind].dump() : "?") + (std::string_view(kind) == "other_nodes" ? " " : "/");
    text += line["result_code"].dump();
    if (line.contains("update_reason"))
        text += " " + line["update_reason"].get<std::string>();
    return text + (line["captured"] == 1 ? " captured" : "");
}

// "call result" of a described line.
std::string without_objects(const std::string& line)
{
    std::istringstream words(line);
    std::string call, graph, exec, nodes, result;
    words >> call >> graph >> exec >> nodes >> result;
    return call + " " + result;
}

// Functions by a part of their name, and what a call of them does to a graph with an empty node, to an executable graph
// with a kernel, or to a new graph. Child graphs have a copy and a host function.
struct Function {
    std::string_view part, call;
    std::string_view nodes; // kernels/copies/others after the call; empty: unknown

    bool is(std::string_view function) const { return function.find(part) != std::string_view::npos; }
};

const Function functions[] = {
    {"SetParams", "set", "1/0/0"},
    {"NodeSetEvent", "set", "1/0/0"},
    {"NodeSetEnabled", "set", "1/0/0"},
    {"GraphAddKernelNode", "add", "1/0/1"},
    {"GraphAddMemcpyNode", "add", "0/1/1"},
    {"GraphAddMemsetNode", "add", "0/1/1"},
    {"GraphAddChildGraphNode", "add", "0/1/2"},
    {"GraphAddNode", "add", "0/1/2"}, // its type is that of a child graph
    {"GraphAdd", "add", "0/0/2"},
    {"GraphExecUpdate", "update", "0/0/1"},
    {"GraphExecDestroy", "exec-destroy", "1/0/0"},
    {"GraphDestroy", "destroy", "0/0/1"},
    {"GraphInstantiate", "instantiate", "0/0/1"},
    {"GraphUpload", "upload", "1/0/0"},
    {"GraphLaunch", "launch", "1/0/0"},
    {"GraphCreate", "create", "0/0/0"},
    {"GraphClone", "create", "0/0/1"},
    {"BeginCaptureToGraph", "begin", "0/0/1"},
    {"BeginCapture", "begin", ""},
    {"EndCapture", "capture", "1/0/0"},
    {"DeviceGraphMemTrim", "trim", ""},
};

// Functions that add a node, or become one under capture, by a part of their name; and the nodes of the graph.
const std::pair<std::string_view, std::string_view> nodes_of_functions[] = {
    {"GraphAddKernelNode", "1/0/0/0/0"},
    {"GraphAddMemcpyNode", "0/1/0/0/0"},
    {"GraphAddMemsetNode", "0/0/1/0/0"},
    {"GraphAddHostNode", "0/0/0/1/0"},
    {"GraphAddChildGraphNode", "1/0/0/0/0"}, // the child graph has a kernel
    {"GraphAddNode", "0/0/1/0/0"},           // its type is that of a memset
    {"GraphAdd", "0/0/0/0/1"},
    {"HostFunc", "0/0/0/1/0"},
    {"AddCallback", "0/0/0/1/0"},
    {"MultiDevice", "2/0/0/0/0"}, // the list has two kernels
    {"Launch", "1/0/0/0/0"},
    {"Memset", "0/0/1/0/0"},
    {"Memcpy", "0/1/0/0/0"},
    {"Prefetch", "0/0/0/0/1"},
    {"Alloc", "0/0/0/0/1"}, // allocations and frees in stream order
    {"Malloc", "0/0/0/0/1"},
    {"Free", "0/0/0/0/1"},
    {"Discard", "0/0/0/0/1"},
};

struct Case {
    std::string_view layers; // prefixes of the functions that the script can call
    std::string_view script;
    Strings rows;
};

const Case cases[] = {
    // nodes of each kind, of child graphs and of clones
    {"cu cuda hip",
     "create G; add G kernel 3; add G memcpy 2; add G memset; add G host; add G empty 4; create H; add H kernel 5;"
     "add H child of=G 2; clone H C; add C memset result=1; instantiate G X; launch X 2; upload X; instantiate H Y;"
     "launch Y; instantiate C Z; launch Z 3; set X 4; add C kernel; add G kernel; destroy H; launch Y",
     {"3/2/1/1/4 launches=2 kernels_launched=6 uploads=1 parameter_sets=4", "11/4/2/2/8 launches=2 kernels_launched=22",
      "11/4/2/2/8 launches=3 kernels_launched=33"}},
    {"cu cuda hip",
     "create G; add G node type=0; create H; add H node type=1; add H node type=2 2; add H node type=3 3;"
     "add H node type=5 4; add H node type=4 of=G 5; add H node type=13; instantiate H X; launch X",
     {"5/1/2/3/5 launches=1 kernels_launched=5"}},
    {"cu cuda hip", "create G; instantiate G X; launch X; instantiate G Y result=2", {"0/0/0/0/0 launches=1"}},
    // updates: a refused one changes nothing
    {"cu cuda hip",
     "create G; add G kernel 3; create H; add H kernel 4; create M; add M memset 3; instantiate G X; launch X 5;"
     "update X H 3; launch X 7; update X M reason=3 result=910; update X G result=1 reason=1; update X M reason=2 "
     "result=910; drop X; instantiate H X;"
     "launch X 11",
     {"4/0/0/0/0 launches=12 kernels_launched=43 errors=3 updates=3 failed_updates=3 destroyed=1 topology",
      "4/0/0/0/0 launches=11 kernels_launched=44"}},
    // failed calls leave graphs and handles as they were
    {"cu cuda hip",
     "create G; add G kernel 2; instantiate G X; launch X 2 result=700; drop X result=1; launch X 2; destroy G "
     "result=1;"
     "drop X; instantiate G Y; launch Y; drop Y; destroy G",
     {"2/0/0/0/0 launches=2 kernels_launched=4 errors=3 destroyed=1",
      "2/0/0/0/0 launches=1 kernels_launched=2 destroyed=1"}},
    // handles of destroyed graphs are reused
    {"cu cuda hip",
     "create G; add G kernel 2; instantiate G X; launch X 3; add G memset 1; drop X; instantiate G X; launch X; drop X;"
     "destroy G; create H; add H host; instantiate H X; launch X",
     {"2/0/0/0/0 launches=3 kernels_launched=6 destroyed=1", "2/0/1/0/0 launches=1 kernels_launched=2 destroyed=1",
      "0/0/0/1/0 launches=1"}},
    // graphs from before tracing
    {"cu cuda hip",
     "old X; launch X 17; upload X 2; old G; create H; add H kernel 2; add H child of=G; instantiate H Y; launch Y 5;"
     "launch X 4 result=700",
     {"?/?/?/?/? launches=17 unknown_launches=17 errors=4 uploads=2", "?/?/?/?/? launches=5 unknown_launches=5"}},
    {"cu cuda hip",
     "old G; begin 16 to=G; kernel on=16 2; end 16 G2 is=G; instantiate G X; launch X 5; add G memset; clone G H;"
     "add H kernel; instantiate H Y; launch Y 7",
     {"?/?/?/?/? launches=5 unknown_launches=5", "?/?/?/?/? launches=7 unknown_launches=7"}},
    {"cu cuda hip",
     "old X; launch X 2; create H; add H kernel 3; update X H; launch X 5",
     {"3/0/0/0/0 launches=7 unknown_launches=2 kernels_launched=15 updates=1"}},
    // calls on a captured stream become nodes, unless they fail
    {"cu cuda hip",
     "kernel on=16 9; begin 16; kernel on=16 3; kernel on=16 result=719 2; kernel on=17 7; host on=16 2; kernel 11;"
     "end 16 G; kernel on=16 6; instantiate G X; launch X 13 on=16; begin 16; kernel on=16; launch X 2 on=16;"
     "launch X on=16 result=1; launch X on=17; end 16 H; instantiate H Y; launch Y 5",
     {"3/0/0/2/0 launches=14 kernels_launched=42 captured=2 errors=1", "7/0/0/4/0 launches=5 kernels_launched=35"}},
    // two captures by one thread
    {"cu cuda hip",
     "begin 16; begin 17; kernel on=16 3; kernel on=17 5; end 16 G; kernel on=17 7; kernel on=16 9; end 17 H;"
     "instantiate G X; instantiate H Y; launch X 2; launch Y 3",
     {"3/0/0/0/0 launches=2 kernels_launched=6", "12/0/0/0/0 launches=3 kernels_launched=36"}},
    // the thread's own stream: 0 in functions with a suffix
    {"cu cuda",
     "begin 0 fn=StreamBeginCapture_ptsz; kernel on=0 fn=LaunchKernel_ptsz 3; kernel on=2 9; kernel on=0 4;"
     "end 2 G; instantiate G X; launch X on=0 fn=GraphLaunch_ptsz; begin 2; launch X on=0 fn=GraphLaunch_ptsz;"
     "end 0 H fn=StreamEndCapture_ptsz; instantiate H Y; launch Y",
     {"12/0/0/0/0 launches=1 kernels_launched=12 captured=1", "12/0/0/0/0 launches=1 kernels_launched=12"}},
    {"hip",
     "begin 0 fn=StreamBeginCapture_spt; kernel on=0 fn=LaunchKernel_spt 3; kernel on=2 9; kernel on=0 4;"
     "record E 0 fn=EventRecord_spt; wait E 16; kernel on=16; end 0 G fn=StreamEndCapture_spt; instantiate G X; launch "
     "X",
     {"13/0/0/0/0 launches=1 kernels_launched=13"}},
    // events carry a capture to other streams, and back
    {"cu cuda hip",
     "begin 16; kernel on=16 2; record E 16; wait E 17; wait E 18; kernel on=17 3; host on=18; record F 17; wait F 16;"
     "record H 18; wait H 16; kernel on=16; end 16 G; kernel on=17 5; kernel on=18 5; instantiate G X; launch X 2;"
     "begin 17; kernel on=17 7; kernel on=16 3; kernel on=18 3; end 17 G; instantiate G Y; launch Y 3",
     {"6/0/0/1/0 launches=2 kernels_launched=12", "7/0/0/0/0 launches=3 kernels_launched=21"}},
    // events that were recorded before a capture, recorded again outside, or destroyed
    {"cu cuda hip",
     "record E 16; begin 16; kernel on=16; wait E 17; kernel on=17 3; record E 16; record E 18; wait E 17; kernel "
     "on=17;"
     "record F 16; drop-event F; wait F 17; kernel on=17 9; end 16 G; instantiate G X; launch X",
     {"1/0/0/0/0 launches=1 kernels_launched=1"}},
    // a capture that extends a graph does not change executable graphs that were instantiated before
    {"cu cuda hip",
     "create G; add G kernel 2; instantiate G X; begin 16 to=G; kernel on=16 3; host on=16; end 16 G2 is=G;"
     "instantiate G Y; launch X 5; launch Y 7; begin 16 to=G; kernel on=16 100; end 16 G3 is=G; instantiate G Z;"
     "launch Z; add G memset 2; update Z G; launch Z 2",
     {"2/0/0/0/0 launches=5 kernels_launched=10", "5/0/0/1/0 launches=7 kernels_launched=35",
      "105/0/2/1/0 launches=3 kernels_launched=315 updates=1"}},
    // a stream that is destroyed during its capture, and a new one with its handle
    {"cu cuda hip",
     "begin 16; kernel on=16; drop-stream 16; new-stream 16; kernel on=16 3; begin 16; kernel on=16 2; end 16 G;"
     "instantiate G X; launch X; begin 16; kernel on=16; drop-stream 16 result=1; kernel on=16; end 16 G; instantiate "
     "G Y;"
     "launch Y; begin 16; kernel on=16; new-stream 16; kernel on=16 7; end 16 G; instantiate G Z; launch Z",
     {"2/0/0/0/0 launches=1 kernels_launched=2", "2/0/0/0/0 launches=1 kernels_launched=2",
      "?/?/?/?/? launches=1 unknown_launches=1"}},
};

} // namespace

TEST_CASE("each executable graph has a row with its nodes and calls", "[bpf][cudagraph]")
{
    need_bpf();
    struct Run {
        std::string_view arguments;
        std::vector<std::pair<std::string, Runtime>> layers;
    };
    for (const Run& tested : {Run{"", {{"cu", any_runtime}, {"hip", hip6}}},
                              {" --api runtime", {{"cuda", cudart12}}},
                              {" --api both", {{"cu", any_runtime}, {"cuda", cudart12}}}}) {
        FakeRun& run = shared_run(fmt::format("cudagraph{}", tested.arguments));
        std::vector<std::tuple<std::string, const Case*, GraphScript>> played;
        for (const auto& [prefix, runtime] : tested.layers) {
            run.set_runtime(runtime);
            for (const Case& each : cases)
                if (fmt::format(" {} ", each.layers).find(fmt::format(" {} ", prefix)) != std::string::npos)
                    std::get<GraphScript>(played.emplace_back(prefix, &each, GraphScript(run, prefix)))
                        .play(each.script);
        }
        const std::vector<json> report = run.report(); // only one, because a report of rows waits for the kernel
        for (const auto& [prefix, each, script] : played) {
            INFO(tested.arguments << ", " << prefix << ": " << each->script);
            CHECK(rows_of(report, script) == each->rows);
        }
        CHECK(run.losses().empty());
    }
}

TEST_CASE("every function that adds a node or is recorded by a capture counts as a node of its kind",
          "[bpf][cudagraph]")
{
    need_bpf();
    constexpr CallSet all =
        calls_of({KIND_GRAPH_NODE, KIND_LAUNCH, KIND_LAUNCH_LEGACY, KIND_LAUNCH_LIST, KIND_LAUNCH_ITEMS, KIND_HOST_FUNC,
                  KIND_COPY, KIND_COPY_BATCH, KIND_COPY_BATCH_3D, KIND_ALLOC, KIND_FREE});
    FakeRun& run = shared_run("cudagraph --api both");
    std::map<std::string, std::pair<std::string, std::string_view>> wanted; // function and nodes by handle
    for (CompiledCall& call : compiled_calls(run, all)) {
        const std::string& function = call.probe.symbol;
        const auto& passed = call.passed[0];
        INFO(function);
        const auto known = std::ranges::find_if(
            nodes_of_functions, [&](const auto& each) { return function.find(each.first) != std::string::npos; });
        REQUIRE(known != std::end(nodes_of_functions));
        const auto made = [&](uint64_t handle) { return reinterpret_cast<uint64_t>(run.memory({handle})); };
        const uint64_t graph = 0x7e0000 + wanted.size() * 16, exec = graph + 1, child = 0x5555;
        if (passed.contains(ARG_CHILD)) {
            run.call("cuGraphCreate", {{ARG_OUT, made(child)}});
            run.call("cuGraphAddKernelNode", {{ARG_GRAPH, child}});
            call.pass(ARG_CHILD, child);
        }
        if (passed.contains(ARG_NODE_TYPE))
            call.pass(ARG_NODE_TYPE, 2);
        const uint64_t stream = passed.contains(ARG_STREAM) ? passed.at(ARG_STREAM) : 0;
        if (passed.contains(ARG_GRAPH)) {
            call.pass(ARG_GRAPH, graph);
            run.call("cuGraphCreate", {{ARG_OUT, made(graph)}});
        } else {
            run.call("cuStreamBeginCapture_v2", {{ARG_STREAM, stream}});
        }
        run.call(call.probe, *call.call);
        run.call(call.probe, *call.call, 1); // adds no node, because it fails
        if (!passed.contains(ARG_GRAPH))
            run.call("cuStreamEndCapture", {{ARG_STREAM, stream}, {ARG_OUT, made(graph)}});
        run.call("cuGraphInstantiate_v2", {{ARG_GRAPH, graph}, {ARG_OUT, made(exec)}});
        wanted[fmt::format("{:#x}", exec)] = {function, known->second};
    }
    const std::vector<json> rows = run.report();
    CHECK(rows.size() == wanted.size());
    for (const json& row : rows) {
        const auto& [function, nodes] = wanted.at(row["exec"]);
        INFO(function);
        CHECK(described(row) == nodes);
    }
    for (const char* function : {"cuMemcpyDtoD_v2", "cuMemAlloc_v2", "hipMemcpy"}) // cannot be captured
        CHECK(!run.handles(function));
    CHECK(rows.size() > 150);
    CHECK(run.losses().empty());
}

TEST_CASE("lines of -e have the handles, nodes and result of each call", "[bpf][cudagraph]")
{
    need_bpf();
    struct Step {
        std::string_view script;
        Strings lines;
    };
    const Step steps[] = {
        {"create G", {"create G - 0/0/0 0"}},
        {"add G kernel 2", {"add G - 1/0/0 0", "add G - 2/0/0 0"}},
        {"add G memcpy", {"add G - 2/1/0 0"}},
        {"add G memset", {"add G - 2/2/0 0"}},
        {"add G host", {"add G - 2/2/1 0"}},
        {"add G empty result=1", {"add G - 2/2/1 1"}},
        {"clone G C", {"create C - 2/2/1 0"}},
        {"add C child of=G", {"add C - 4/4/2 0"}},
        {"instantiate G Z result=2", {"instantiate G - 2/2/1 2"}},
        {"instantiate G X", {"instantiate G X 2/2/1 0"}},
        {"launch X 2 on=16", {"launch G X 2/2/1 0", "launch G X 2/2/1 0"}},
        {"launch X result=700", {"launch G X 2/2/1 700"}},
        {"upload X", {"upload G X 2/2/1 0"}},
        {"set X", {"set G X 2/2/1 0"}},
        {"update X C reason=3 result=910", {"update C X 2/2/1 910 node type"}},
        {"update X C reason=1 result=910; update X C reason=2 result=910; update X C reason=4 result=910;"
         "update X C reason=5 result=910; update X C reason=6 result=910; update X C reason=7 result=910;"
         "update X C reason=8 result=910",
         {"update C X 2/2/1 910 error", "update C X 2/2/1 910 topology", "update C X 2/2/1 910 function",
          "update C X 2/2/1 910 parameters", "update C X 2/2/1 910 not supported",
          "update C X 2/2/1 910 unsupported function", "update C X 2/2/1 910 attributes"}},
        {"update X C reason=200 result=910", {"update C X 2/2/1 910 untold"}},
        {"update X G", {"update G X 2/2/1 0"}},
        {"begin 16", {"begin - - ?/?/? 0"}},
        {"kernel on=16 3; call cuMemcpyHtoDAsync_v2 on=16 2", {}},
        {"launch X on=16", {"launch G X 2/2/1 0 captured"}},
        {"end 16 H", {"capture H - 5/4/1 0"}},
        {"instantiate H Y", {"instantiate H Y 5/4/1 0"}},
        {"drop X", {"exec-destroy G X 2/2/1 0"}},
        {"drop Y result=1", {"exec-destroy H Y 5/4/1 1"}},
        {"launch Y", {"launch H Y 5/4/1 0"}},
        {"destroy G", {"destroy G - 2/2/1 0"}},
        {"destroy H result=1", {"destroy H - 5/4/1 1"}},
        {"instantiate H W", {"instantiate H W 5/4/1 0"}},
        {"begin 16; kernel on=16 3", {"begin - - ?/?/? 0"}},
        {"end 16 K result=901", {"capture - - ?/?/? 901"}},
        {"call cuDeviceGraphMemTrim", {"trim - - ?/?/? 0"}},
        {"call cuMemPoolTrimTo; call cuMemAlloc_v2; kernel", {}}, // not about graphs
    };
    for (const bool only_failed : {false, true}) {
        FakeRun& run = shared_run(only_failed ? "cudagraph -e -x" : "cudagraph -e --api both");
        GraphScript script(run);
        for (const Step& step : steps) {
            INFO(step.script << (only_failed ? ", -x" : ""));
            script.play(step.script);
            Strings wanted = step.lines, got;
            for (const json& line : run.report())
                got.push_back(described_line(line, script));
            if (only_failed) { // then the nodes are unknown, because they follow from calls that succeed
                std::erase_if(wanted, [](const std::string& line) { return line.find(" 0") != std::string::npos; });
                std::ranges::transform(wanted, wanted.begin(), without_objects);
                std::ranges::transform(got, got.begin(), without_objects);
            }
            CHECK(got == wanted);
        }
        CHECK(run.losses().empty());
    }
}

TEST_CASE("every graph function is counted with the arguments that a compiled call passed", "[bpf][cudagraph]")
{
    need_bpf();
    constexpr CallSet all = calls_of({KIND_CAPTURE_BEGIN, KIND_CAPTURE_END, KIND_GRAPH_NEW, KIND_GRAPH_NODE,
                                      KIND_GRAPH_DESTROY, KIND_GRAPH_INSTANTIATE, KIND_GRAPH_UPLOAD, KIND_GRAPH_UPDATE,
                                      KIND_GRAPH_SET, KIND_GRAPH_LAUNCH, KIND_EXEC_DESTROY, KIND_TRIM});
    FakeRun& run = shared_run("cudagraph -e --api both");
    std::set<std::string_view> calls;
    for (CompiledCall& call : compiled_calls(run, all)) {
        const std::string& function = call.probe.symbol;
        INFO(function);
        const auto known = std::ranges::find_if(functions, [&](const Function& each) { return each.is(function); });
        REQUIRE(known != std::end(functions));
        const auto passed = [&](argument which) {
            const auto found = call.passed[0].find(which);
            return found == call.passed[0].end() ? 0 : found->second;
        };
        const auto make = [&](std::string_view maker, uint64_t handle, Arguments arguments = {}) {
            arguments[ARG_OUT] = reinterpret_cast<uint64_t>(run.memory({handle}));
            run.call(maker, arguments);
        };
        const uint64_t graph = passed(ARG_GRAPH), exec = passed(ARG_FUNC), child = passed(ARG_CHILD), other = 0x1111;
        if (graph) {
            make("cuGraphCreate", graph);
            run.call("cuGraphAddEmptyNode", {{ARG_GRAPH, graph}});
        }
        if (child) {
            make("cuGraphCreate", child);
            run.call("cuGraphAddHostNode", {{ARG_GRAPH, child}});
            run.call("cuGraphAddMemcpyNode", {{ARG_GRAPH, child}});
        }
        if (exec) {
            make("cuGraphCreate", other);
            run.call("cuGraphAddKernelNode", {{ARG_GRAPH, other}});
            make("cuGraphInstantiate_v2", exec, {{ARG_GRAPH, other}});
        }
        if (known->call == "capture") {
            run.call("cuStreamBeginCapture_v2", {{ARG_STREAM, passed(ARG_STREAM)}});
            run.call("cuLaunchKernel", {{ARG_STREAM, passed(ARG_STREAM)}});
        }
        const uint64_t made = known->call == "update" ? 3 : 0x2222;
        if (passed(ARG_OUT))
            call.pass(ARG_OUT, reinterpret_cast<uint64_t>(run.memory({made})));
        if (call.passed[0].contains(ARG_NODE_TYPE))
            call.pass(ARG_NODE_TYPE, 4);
        run.report();

        run.call(call.probe, *call.call, 903); // fails, and changes nothing, not even a capture
        run.call(call.probe, *call.call);
        const std::vector<json> lines = run.report();
        REQUIRE(lines.size() == 2);
        for (const json& line : lines) {
            CHECK(line["function"] == function);
            CHECK(line["call"] == known->call);
            CHECK(line["layer"] == (function.starts_with("hip")    ? "hip"
                                    : function.starts_with("cuda") ? "runtime"
                                                                   : "driver"));
            if (passed(ARG_STREAM))
                CHECK(line["stream"] == fmt::format("{:#x}", passed(ARG_STREAM)));
        }
        CHECK(lines[0]["result_code"] == 903);
        const json& line = lines[1];
        CHECK(line["result_code"] == 0);
        const bool makes_graph = known->call == "create" || known->call == "capture",
                   of_exec = exec || known->call == "instantiate";
        const auto handle = [](uint64_t value) { return value ? json(fmt::format("{:#x}", value)) : json(); };
        CHECK(line.value("graph", json()) == handle(makes_graph ? made : graph ? graph : exec ? other : 0));
        CHECK(line.value("exec", json()) == handle(exec ? exec : of_exec ? made : 0));
        if (known->nodes.empty())
            CHECK(!line.contains("kernels"));
        else
            CHECK(fmt::format("{}/{}/{}", line["kernels"].dump(), line["copies"].dump(), line["other_nodes"].dump()) ==
                  known->nodes);
        if (known->call == "update")
            CHECK(lines[0]["update_reason"] == "node type");
        if (known->call == "begin")
            run.call("cuStreamEndCapture", {{ARG_STREAM, passed(ARG_STREAM)}}, 901);
        calls.insert(known->call);
    }
    CHECK(calls.size() == 12);
    CHECK(run.losses().empty());
}

TEST_CASE("a call counts for the graph that had the handle when the call began", "[bpf][cudagraph]")
{
    need_bpf();
    FakeRun& run = shared_run("cudagraph");
    for (const char* function : {"cuGraphLaunch", "cuGraphUpload"}) {
        INFO(function);
        const bool launches = function == std::string_view("cuGraphLaunch");
        GraphScript script(run);
        script.play("create G; add G kernel 3; create H; add H kernel 5; instantiate G X; launch X 2");
        run.enter(function, {{ARG_FUNC, script.handle("X")}});
        const uint64_t handle = script.handle("X");
        std::thread([&] { script.play("drop X; instantiate H Y; launch Y 7"); }).join();
        CHECK(script.handle("Y") == handle);
        CHECK(rows_of(run.report(), script) == Strings{"3/0/0/0/0 launches=2 kernels_launched=6 destroyed=1",
                                                       "5/0/0/0/0 launches=7 kernels_launched=35"});
        run.leave();
        const Strings later = rows_of(run.report(), script);
        if (launches)
            CHECK(later == Strings{"3/0/0/0/0 launches=1 kernels_launched=3"});
        else
            CHECK(later == Strings{"3/0/0/0/0 uploads=1"});
    }
    // a new graph has the handle before the call that destroys the old one returns
    GraphScript script(run);
    for (const uint64_t result : {0, 1}) {
        script.play("create G; add G kernel; instantiate G X; launch X");
        run.enter("cuGraphExecDestroy", {{ARG_FUNC, script.handle("X")}});
        if (!result)
            std::thread([&] { script.play("add G host; instantiate G Y is=X; launch Y 3"); }).join();
        run.leave(result);
        script.play(result ? "launch X 5" : "launch Y");
    }
    CHECK(rows_of(run.report(), script) == Strings{"1/0/0/0/0 launches=1 kernels_launched=1 destroyed=1",
                                                   "1/0/0/1/0 launches=4 kernels_launched=4",
                                                   "1/0/0/0/0 launches=6 kernels_launched=6 errors=1"});
    CHECK(run.losses().empty());

    // all threads' calls on a captured stream are recorded
    script.play("begin 16; kernel on=16");
    std::thread([&] { script.play("kernel on=16 5; kernel on=17 3"); }).join();
    script.play("kernel on=16; end 16 G; instantiate G X; launch X");
    CHECK(rows_of(run.report(), script) == Strings{"7/0/0/0/0 launches=1 kernels_launched=7"});

    // each thread has its own per-thread stream, and captures at the same time
    script.play("begin 2; kernel on=2");
    std::thread([&] { script.play("kernel on=2 5; begin 2; kernel on=2 7; end 2 H; kernel on=2 9"); }).join();
    script.play("kernel on=2; end 2 G; instantiate G X; launch X; instantiate H Y; launch Y");
    CHECK(rows_of(run.report(), script) ==
          Strings{"2/0/0/0/0 launches=1 kernels_launched=2", "7/0/0/0/0 launches=1 kernels_launched=7"});
    CHECK(run.losses().empty());

    // losses
    run.enter("cuGraphInstantiate_v2", {{ARG_GRAPH, script.handle("G")}});
    run.jump_out();
    run.enter("cuGraphLaunch", {{ARG_FUNC, script.handle("X")}});
    run.jump_out();
    script.play("launch X");
    CHECK(run.losses() == Lost{{"calls_left", 2}});
    run.leave_unseen("cuGraphLaunch");
    run.leave_unseen("cuGraphUpload");
    CHECK(run.losses() == Lost{{"ends_unmatched", 2}});
    run.break_memory();
    run.call("cuGraphAddNode", {{ARG_GRAPH, script.handle("G")}});
    CHECK(run.losses() == Lost{{"arguments_unreadable", 1}});
    run.call("cuGraphExecUpdate", {{ARG_FUNC, script.handle("X")}, {ARG_GRAPH, 1}, {ARG_OUT, FakeRun::unreadable}},
             910);
    CHECK(rows_of(run.report(), script) ==
          Strings{"2/0/0/0/0 launches=1 kernels_launched=2 errors=1 failed_updates=1 untold"});
}

TEST_CASE("a capture that fails leaves no graph, unless it can be ended again", "[bpf][cudagraph]")
{
    need_bpf();
    FakeRun& run = shared_run("cudagraph -e --api both");
    for (const int result : {900, 901, 902, 903, 904, 905, 906, 907, 908}) {
        INFO(result);
        GraphScript script(run);
        const bool continues = result == 903 || result == 908; // other stream, other thread
        script.play("begin 17; kernel on=17; begin 16; kernel on=16 3; record E 16; wait E 18; kernel on=18 2");
        script.play(fmt::format("end {} G result={}", continues ? 18 : 16, result));
        script.play("kernel on=16 7; kernel on=18 11");
        script.play(continues ? "end 16 K" : "begin 16; kernel on=16 5; kernel on=18 7; end 16 K");
        script.play("begin 18; kernel on=18; end 18 L; end 17 M");
        Strings ends;
        for (const json& line : run.report())
            if (line["call"] == "capture")
                ends.push_back(described_line(line, script));
        CHECK(ends == Strings{fmt::format("capture - - ?/?/? {}", result),
                              continues ? "capture K - 23/0/0 0" : "capture K - 5/0/0 0", "capture L - 1/0/0 0",
                              "capture M - 1/0/0 0"});
    }
    CHECK(run.losses().empty());
}

TEST_CASE("graphs, executable graphs and captures for which there is no room are lost", "[bpf][cudagraph]")
{
    need_bpf();
    // a process may have three quarters of a table
    FakeRun run("cudagraph -e",
                {{"graphs", 8}, {"execs", 8}, {"captures", 4}, {"capturing_streams", 4}, {"captured_events", 4}});
    const auto lines = [&](const GraphScript& script) {
        Strings all;
        for (const json& line : run.report())
            all.push_back(described_line(line, script));
        return all;
    };
    GraphScript script(run);
    script.play("create A; create B; create C; create D; create E; create F; add A kernel");
    CHECK(run.losses().empty());
    run.report();
    script.play("create G; add G kernel; add F kernel");
    CHECK(lines(script) == Strings{"create G - ?/?/? 0", "add G - ?/?/? 0", "add F - 1/0/0 0"});
    CHECK(run.losses() == Lost{{"state_lost", 1}});
    script.play("destroy A; create H; add H kernel 2"); // in the place of A
    CHECK(lines(script).back() == "add H - 2/0/0 0");
    CHECK(run.losses().empty());

    script.play("instantiate H U; instantiate H V; instantiate H W; instantiate H X; instantiate H Y; instantiate H Z");
    CHECK(run.losses().empty());
    run.report();
    script.play("instantiate H T; launch T; drop Z");
    CHECK(lines(script) == Strings{"instantiate H T 2/0/0 0", "launch - T ?/?/? 0", "exec-destroy H Z 2/0/0 0"});
    script.play("instantiate H S; launch S");
    CHECK(lines(script) == Strings{"instantiate H S 2/0/0 0", "launch H S 2/0/0 0"});
    CHECK(run.losses() == Lost{{"state_lost", 2}}); // the instantiation and the launch of T

    script.play("begin 16; begin 17; begin 18");
    CHECK(run.losses().empty());
    script.play("begin 19; kernel on=19; begin 20; kernel on=20");
    CHECK(run.losses() == Lost{{"state_lost", 2}});
    script.play("kernel on=16; end 16 H; begin 19; kernel on=19 3; end 19 H; end 18 H; end 17 H");
}

TEST_CASE("--summary counts captures, instantiations, and kernels from graphs and without graphs", "[bpf][cudagraph]")
{
    need_bpf();
    FakeRun run("cudagraph --summary");
    GraphScript script(run);
    script.play("create G; add G kernel 3; create H; destroy H; instantiate G X; instantiate G Y; drop Y; launch X 10;"
                "launch X 2 result=700; instantiate G Z result=2; begin 16; kernel on=16 4");
    std::this_thread::sleep_for(2ms);
    script.play("end 16 K; begin 17; end 17 L result=901; kernel 17; kernel on=16 result=719 3; set X; update X G;"
                "update X K reason=2 result=910; upload X");
    run.enter("cuGraphInstantiateWithFlags", {{ARG_GRAPH, script.handle("G")}, {ARG_OUT, FakeRun::unreadable}});
    std::this_thread::sleep_for(3ms);
    run.leave(2);
    run.call("cuLaunchCooperativeKernelMultiDevice", {{ARG_COUNT, 3}}); // counts once
    run.call("hipExtModuleLaunchKernel", {}, 1);
    std::vector<json> rows = run.report();
    REQUIRE(rows.size() == 2);
    std::ranges::sort(rows, {}, [](const json& each) { return each["vendor"] == "amd"; });
    CHECK(rows[1]["direct_launches"] == 1);
    const json& row = rows[0];
    for (const auto& [key, value] : std::map<std::string, uint64_t>{{"captures", 1},
                                                                    {"failed_captures", 1},
                                                                    {"instantiates", 2},
                                                                    {"live_graphs", 2},
                                                                    {"live_execs", 1},
                                                                    {"launches", 12},
                                                                    {"kernels_launched", 36},
                                                                    {"direct_launches", 21},
                                                                    {"updates", 1},
                                                                    {"failed_updates", 1},
                                                                    {"uploads", 1},
                                                                    {"parameter_sets", 1},
                                                                    {"destroyed", 1},
                                                                    {"errors", 4}}) {
        INFO(key);
        CHECK(row[key] == value);
    }
    CHECK(std::abs(row["graph_percent"].get<double>() - 100 * 36. / (36 + 21)) < 0.01);
    const double capture_ns = row["capture_ns"], instantiate_ns = row["instantiate_total_ns"];
    CHECK((capture_ns >= 2e6 && capture_ns < 1e9));
    CHECK((instantiate_ns >= 3e6 && instantiate_ns < 1e9));
    const double interval_ns = row["interval_ns"];
    // the columns about updates appear only with updates
    CHECK(run.report_in_text().find("UPDATES") == std::string::npos);
    script.play("update X G");
    CHECK(run.report_in_text().find("UPDATES") != std::string::npos);
    CHECK(std::abs(row["setup_percent"].get<double>() - 100 * (capture_ns + instantiate_ns) / interval_ns) < 0.01);
    CHECK(run.losses().empty());
}

TEST_CASE("the histogram of nodes has the sizes of launched graphs", "[bpf][cudagraph]")
{
    need_bpf();
    FakeRun run("cudagraph -H nodes");
    GraphScript(run).play("create G; add G kernel 3; instantiate G X; launch X 25; create H; add H kernel 40;"
                          "add H memset 60; instantiate H Y; launch Y 7; launch Y 2 result=700; old Z; launch Z 5");
    const std::vector<json> records = run.report();
    REQUIRE(records.size() == 1);
    CHECK(records[0]["unit"] == "nodes");
    std::map<uint64_t, uint64_t> launches; // by the least number of nodes
    for (const json& bucket : records[0]["buckets"])
        launches[bucket["low"]] += bucket["count"].get<uint64_t>();
    CHECK(json(launches) == json(decltype(launches){{3, 25}, {96, 9}})); // 96 to 103 share a bucket
    CHECK(run.losses().empty());
}

TEST_CASE("graph calls are grouped by stream, device, thread and function", "[bpf][cudagraph]")
{
    need_bpf();
    std::array<char, 16> name{};
    prctl(PR_GET_NAME, name.data());
    FakeRun run(fmt::format("cudagraph --by stream,device,thread,api -n {}", name.data()));
    GraphScript script(run);
    script.play("create G; instantiate G X; launch X 2 on=16; upload X on=17; launch X on=0 fn=GraphLaunch_ptsz");
    const auto in_context = [&](uint64_t context, int device) {
        run.call("cuCtxCreate_v2",
                 {{ARG_OUT, reinterpret_cast<uint64_t>(run.memory({context}))}, {ARG_DEVICE, device}});
    };
    in_context(0xc0, 3);
    script.play("launch X 4 on=16 result=700; launch X 8 on=16");
    std::thread([&] { script.play("launch X 16 on=16"); }).join();
    // calls of processes with another name are neither counted nor lost
    prctl(PR_SET_NAME, "hay");
    script.play("launch X 99; upload X 99; update X G 99");
    run.leave_unseen("cuGraphLaunch");
    run.leave_unseen("cuGraphUpload");
    prctl(PR_SET_NAME, name.data());
    std::map<std::string, uint64_t> launches, errors;
    for (const json& row : run.report()) {
        const std::string device = row.contains("device") ? row["device"].dump() : "?";
        const bool is_main = row["tid"] == getpid();
        const std::string key = fmt::format("{} {} {} {}", row["function"].get<std::string>(),
                                            row["stream"].get<std::string>(), device, is_main ? "main" : "other");
        launches[key] += row["launches"].get<uint64_t>() + row["uploads"].get<uint64_t>();
        errors[key] += row["errors"].get<uint64_t>();
    }
    std::erase_if(launches, [](const auto& row) { return row.second == 0; });
    std::erase_if(errors, [](const auto& row) { return row.second == 0; });
    CHECK(launches == decltype(launches){{"cuGraphLaunch 0x10 ? main", 2},
                                         {"cuGraphUpload 0x11 ? main", 1},
                                         {"cuGraphLaunch_ptsz 0x2 ? main", 1},
                                         {"cuGraphLaunch 0x10 3 main", 8},
                                         {"cuGraphLaunch 0x10 ? other", 16}});
    CHECK(errors == decltype(errors){{"cuGraphLaunch 0x10 3 main", 4}});
    CHECK(run.losses().empty());
}
