// SPDX-License-Identifier: Apache-2.0
// Graphs: recorded by capture or built node by node, then launched.
#include "calls.hpp"
#include "kernels.hpp"
#include "session.hpp"
#include "steps.hpp"
#include "symbols.hpp"

#include <algorithm>

namespace workload {
namespace {

void must(int result, const std::string& function)
{
    if (result)
        fail(function + " returned " + std::to_string(result));
}

void instantiate(const Step& step, void* graph, uint64_t kernels)
{
    auto function = step.option("instantiate", runtime_major ? "cudaGraphInstantiate" : "cuGraphInstantiateWithFlags");
    GraphExec exec{nullptr, kernels};
    standin::InstantiateParams params = {};
    // The other forms differ in arguments that are zero here, so that one call fits them all.
    must(without_suffix(function).ends_with("WithParams")
             ? setup(function, &exec.exec, graph, &params)
             : setup(function, &exec.exec, graph, 0ull, nullptr, static_cast<size_t>(0)),
         function);
    set_last_graph(exec);
}

} // namespace

// capture begin [stream=N] [fn=...]; capture end [stream=N] [fn=...] [instantiate=...]
void capture(const Step& step)
{
    bool begin = step.word(0) == "begin";
    if (!begin && step.word(0) != "end")
        wrong(step, "begin or end?");
    auto prefix = std::string(runtime_major ? "cudaStream" : "cuStream");
    auto fallback = prefix + (!begin ? "EndCapture" : runtime_major ? "BeginCapture" : "BeginCapture_v2");
    auto function = step.option("fn", fallback);
    ready_driver();
    void* s = stream(step, "1");
    if (begin) {
        must(setup(function, s, 0), function);
        return start_capture(s);
    }
    void* graph = nullptr;
    must(setup(function, s, &graph), function);
    instantiate(step, graph, stop_capture(s));
}

// build KERNEL NODES [grid=] [block=] [smem=] [instantiate=...]
void build_graph(const Step& step)
{
    auto all = kernels();
    auto kernel = std::ranges::find_if(all, [&](const Kernel& k) { return step.word(0) == k.name; });
    standin::KernelNodeParams params = {};
    params.function = handle(kernel == all.end() ? unescaped(step.word(0)) : kernel->device_name, HandleKind::function);
    params.grid = step.triple("grid");
    params.block = step.triple("block");
    params.shared = static_cast<unsigned>(step.number("smem", 0));
    void *graph = nullptr, *node = nullptr;
    must(setup("cuGraphCreate", &graph, 0u), "cuGraphCreate");
    for (uint64_t i = 0; i < step.number(1); i++)
        must(setup("cuGraphAddKernelNode_v2", &node, graph, nullptr, static_cast<size_t>(0), &params),
             "cuGraphAddKernelNode_v2");
    instantiate(step, graph, step.number(1));
}

// graph COUNT [fn=...] [stream=N]: launches the graph made last.
void launch_graph(const Step& step)
{
    auto function = step.option("fn", runtime_major ? "cudaGraphLaunch" : "cuGraphLaunch");
    if (!without_suffix(function).ends_with("GraphLaunch"))
        wrong(step, "nothing launches graphs by " + function);
    bool by_runtime = function.starts_with("cuda");
    auto graph = last_graph();
    if (!graph.exec)
        wrong(step, "no graph yet: use capture or build");
    Pace pace(step);
    ready_driver();

    Call call;
    call.kind = "graph";
    call.layer = by_runtime ? "runtime" : "driver";
    call.function = function;
    call.handle = reinterpret_cast<uintptr_t>(graph.exec);
    call.kernels = graph.kernels;
    call.device = device();
    void* s = stream(step);
    call.stream = reinterpret_cast<uintptr_t>(s);
    void* target = symbol(function);
    auto results = make_calls(pace, step.number(0), [&] { return call_symbol(target, graph.exec, s); });
    if (!by_runtime)
        return add_results(call, results, pace);
    Call nested = call;
    nested.layer = "driver";
    nested.nested = true;
    nested.function = "cu" + function.substr(4);
    add_results(call, results, pace, nested);
}

} // namespace workload
