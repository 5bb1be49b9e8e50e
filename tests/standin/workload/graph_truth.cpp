// SPDX-License-Identifier: Apache-2.0
#include "graph_truth.hpp"

#include "json.hpp"
#include "kernels.hpp"
#include "session.hpp"
#include "symbols.hpp"

#include <map>
#include <mutex>
#include <unistd.h>

namespace workload {

using namespace json;

namespace {

std::mutex lock;
std::map<GraphCall, Tally> calls;

struct Times {
    std::map<GraphKey, uint64_t> by_key;
    uint64_t count = 0, ns = 0;

    void add(const GraphKey& key, uint64_t duration)
    {
        by_key[key] += duration;
        count++;
        ns += duration;
    }
    uint64_t at(const GraphKey& key) const
    {
        auto found = by_key.find(key);
        return found == by_key.end() ? 0 : found->second;
    }
};
Times captures, instantiations;

uint64_t number(void* handle)
{
    return reinterpret_cast<uintptr_t>(handle);
}

std::string named(const std::string& name, const GraphKey& n)
{
    return field_if(n.handle, name.c_str(), Hex{number(n.handle)}) +
           field_if(n.handle, (name + "_generation").c_str(), n.generation);
}

std::string line(const GraphCall& c, const Tally& tally)
{
    return "{\"type\":\"graph-call\"" + field("pid", getpid()) + field("tid", c.tid) + field("comm", c.comm) +
           field("layer", std::string(is_runtime(c.function) ? "runtime" : "driver")) + field("function", c.function) +
           field("kind", c.kind) + field("node", OrNull{c.node}) + named("graph", c.graph) + named("exec", c.exec) +
           named("of", c.source) + field_if(c.stream.has_value(), "stream", Hex{c.stream.value_or(0)}) +
           field("device", c.device) + field("result", c.result) + field("update_result", c.update_result) +
           field("recorded", c.recorded) + field("nested", c.nested) + field("kernels", c.kernels) +
           field("count", tally.count) + field("duration_ns", tally.duration_ns) + field("slept_ns", tally.slept_ns) +
           "}\n";
}

std::string counts(const standin::NodeCounts& n)
{
    return field("kernels", n.kernels) + field("copies", n.copies) + field("memsets", n.memsets) +
           field("host", n.host) + field("others", n.others) + field("nodes", n.nodes()) +
           field("children", n.children);
}

std::string line(const standin::GraphRecord& r)
{
    void* handle = reinterpret_cast<void*>(r.handle);
    std::string out = field("handle", Hex{r.handle}) + field("generation", r.generation) +
                      named(r.is_exec ? "graph" : "of", {reinterpret_cast<void*>(r.graph), r.graph_generation}) +
                      counts(r.counts) + field("destroyed", r.destroyed);
    if (!r.is_exec)
        return summary("graph",
                       out + field("captured", r.captured) + field("capture_ns", captures.at({handle, r.generation})));
    return summary("exec", out + field("launches", r.launches) + field("failed_launches", r.failed_launches) +
                               field("uploads", r.uploads) + field("set_params", r.set_params) +
                               field("updates", r.updates) + field("failed_updates", r.failed_updates) +
                               field_if(r.updates || r.failed_updates, "update_result", r.update_result) +
                               field("instantiate_ns", instantiations.at({handle, r.generation})));
}

void add(GraphCall call, const Tally& tally)
{
    call.device = device();
    call.tid = gettid();
    call.comm = thread_name();
    std::lock_guard hold(lock);
    calls[std::move(call)] += tally;
}

} // namespace

GraphKey graph_key(void* handle)
{
    return {handle, handle ? driver_generation(handle, false) : 0};
}

GraphKey exec_key(void* handle)
{
    return {handle, handle ? driver_generation(handle, true) : 0};
}

std::string nested_function(const std::string& function)
{
    // Usually the driver function's name is the runtime function's without "da"; these are the exceptions. In CUDA 13,
    // cudaGraphAddNode takes edge data.
    static const std::map<std::string, std::string> exceptions = {
        {"cudaGraphAddKernelNode", "cuGraphAddKernelNode_v2"},
        {"cudaGraphAddMemcpyNode1D", "cuGraphAddMemcpyNode"},
        {"cudaGraphAddMemcpyNodeToSymbol", "cuGraphAddMemcpyNode"},
        {"cudaGraphAddMemcpyNodeFromSymbol", "cuGraphAddMemcpyNode"},
        {"cudaGraphAddNode", runtime_major < 13 ? "cuGraphAddNode" : "cuGraphAddNode_v2"},
        {"cudaGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams_v2"},
        {"cudaGraphExecMemcpyNodeSetParams1D", "cuGraphExecMemcpyNodeSetParams"},
        {"cudaGraphExecMemcpyNodeSetParamsToSymbol", "cuGraphExecMemcpyNodeSetParams"},
        {"cudaGraphExecMemcpyNodeSetParamsFromSymbol", "cuGraphExecMemcpyNodeSetParams"},
        {"cudaGraphExecUpdate", "cuGraphExecUpdate_v2"},
        {"cudaGraphInstantiate", "cuGraphInstantiateWithFlags"},
        {"cudaStreamBeginCapture", "cuStreamBeginCapture_v2"},
    };
    auto base = without_suffix(function);
    auto found = exceptions.find(base);
    return (found == exceptions.end() ? "cu" + base.substr(4) : found->second) + suffix(function);
}

void add_graph_results(const GraphCall& call, const Results& results, const Pace& pace)
{
    for (auto [result, tally] : results) {
        if (!tally.count)
            continue;
        GraphCall made = call;
        made.result = result;
        made.recorded &= !result;
        bool reached = !pace.failed_in_runtime(result);
        tally.slept_ns = reached ? tally.count * pace.slept_ns() : 0;
        add(made, tally);
        if (!is_runtime(call.function) || !reached)
            continue;
        made.function = nested_function(call.function);
        made.nested = true;
        add(made, tally);
    }
}

void add_capture(const GraphKey& graph, uint64_t ns)
{
    std::lock_guard hold(lock);
    captures.add(graph, ns);
}

void add_instantiation(const GraphKey& exec, uint64_t ns)
{
    std::lock_guard hold(lock);
    instantiations.add(exec, ns);
}

std::string graph_lines()
{
    std::string out;
    for (const auto& [call, tally] : calls)
        out += line(call, tally);
    uint64_t live[2] = {};
    for (const auto& record : driver_graphs()) {
        out += line(record);
        live[record.is_exec] += !record.destroyed;
    }
    return out + summary("graphs", field("captures", captures.count) + field("capture_ns", captures.ns) +
                                       field("instantiates", instantiations.count) +
                                       field("instantiate_ns", instantiations.ns) + field("execs_live", live[true]) +
                                       field("graphs_live", live[false]));
}

void forget_graphs()
{
    calls.clear();
    captures = instantiations = {};
}

} // namespace workload
