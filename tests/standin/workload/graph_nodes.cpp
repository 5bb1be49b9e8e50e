// SPDX-License-Identifier: Apache-2.0
// Graph nodes: adds them to graphs, and changes kernel nodes in executable graphs. To add a kind, add a row.
#include "graph.hpp"
#include "kernels.hpp"
#include "memory.hpp"
#include "symbols.hpp"

#include <algorithm>

namespace workload {
namespace {

using standin::NodeType;

struct NodeRow {
    std::string_view name;
    NodeType type;
    const char* added_by;
    const char* driver_suffix = "";
};
const NodeRow rows[] = {
    {"kernel", NodeType::kernel, "GraphAddKernelNode", "_v2"}, {"memcpy", NodeType::memcpy, "GraphAddMemcpyNode"},
    {"memset", NodeType::memset, "GraphAddMemsetNode"},        {"host", NodeType::host, "GraphAddHostNode"},
    {"child", NodeType::graph, "GraphAddChildGraphNode"},      {"empty", NodeType::empty, "GraphAddEmptyNode"},
};

// Parameters of a node, in the driver's or the runtime's structure.
struct Params {
    standin::KernelNodeParams kernel = {};
    standin::Copy3D copy = {};
    standin::RuntimeCopy3D runtime_copy = {};
    standin::MemsetNode set = {};
    standin::HostNodeParams host = {};
    uint64_t zeros[16] = {}; // for kinds whose parameters are not read
    void* child = nullptr;

    void* of(NodeType type, bool runtime)
    {
        switch (type) {
        case NodeType::kernel:
            return &kernel;
        case NodeType::memcpy:
            return runtime ? static_cast<void*>(&runtime_copy) : &copy;
        case NodeType::memset:
            return &set;
        case NodeType::host:
            return &host;
        case NodeType::graph:
            return child;
        default:
            return zeros;
        }
    }
};

void nothing_to_do(void*) {}

constexpr size_t copied_bytes = 1024;
char host_memory[2][copied_bytes];

void* kernel_of(const Step& step, bool runtime)
{
    auto name = step.option("kernel", "vecadd");
    const Kernel* kernel = find_kernel(name);
    if (runtime && (!kernel || !kernel->stub))
        wrong(step, "this form has no stub for " + name);
    return runtime ? const_cast<void*>(kernel->stub) : handle(device_name(name), HandleKind::function);
}

Params params_of(const Step& step, NodeType type, bool runtime)
{
    static void* arguments[8] = {};
    Params p;
    if (!runtime)
        ready_driver();
    if (type == NodeType::kernel)
        p.kernel.function = kernel_of(step, runtime);
    p.kernel.arguments = arguments;
    p.copy.source.type = p.copy.destination.type = standin::MemoryType::host;
    p.copy.source.host = host_memory[0], p.copy.destination.host = host_memory[1];
    p.copy.width = copied_bytes, p.copy.height = p.copy.depth = 1;
    p.runtime_copy.source.pointer.pointer = host_memory[0];
    p.runtime_copy.destination.pointer.pointer = host_memory[1];
    p.runtime_copy.extent = {copied_bytes, 1, 1};
    // A real driver can only fill device memory.
    bool fills_device = type == NodeType::memset && on_device();
    p.set = {fills_device ? memory(step, "dst", Side::device).address : host_memory[1], 0, 0, 1, copied_bytes, 1};
    p.host = {nothing_to_do, nullptr};
    if (type == NodeType::graph)
        p.child = graph(step, step.option("of", ""));
    return p;
}

void add(const Step& step, void* graph, const NodeRow& row, Params& params, const std::string& function, uint64_t count)
{
    GraphCall call{.function = function, .kind = "add", .node = std::string(row.name)};
    call.graph = graph_key(graph);
    if (row.type == NodeType::graph)
        call.source = graph_key(params.child);
    void* node = nullptr;
    void* const of_type = params.of(row.type, is_runtime(function));
    graph_calls(step, call, count, [&](void* f) {
        return call_symbol(f, &node, graph, nullptr, static_cast<size_t>(0), of_type, nullptr);
    });
}

// Finds the first kernel node in the driver's list of nodes.
void* find_kernel_node(const Step& step, void* graph)
{
    ready_driver();
    size_t count = 0;
    setup("cuGraphGetNodes", graph, nullptr, &count);
    std::vector<void*> nodes(count);
    setup("cuGraphGetNodes", graph, nodes.data(), &count);
    for (void* node : nodes) {
        auto found = NodeType::other;
        call_symbol(symbol("cuGraphNodeGetType"), node, &found);
        if (found == NodeType::kernel)
            return node;
    }
    wrong(step, "the graph has no kernel node");
}

} // namespace

// graph add GRAPH KIND [COUNT] [fn=] [of=] [kernel=]
void add_nodes(const Step& step)
{
    const auto row = std::ranges::find(rows, step.word(2), &NodeRow::name);
    if (row == std::end(rows))
        wrong(step, "no such node: " + step.word(2));
    auto function = function_of(step, row->added_by, row->driver_suffix);
    auto params = params_of(step, row->type, is_runtime(function));
    add(step, graph(step, step.word(1)), *row, params, function, to_number(step, step.word(3, "1")));
}

void add_kernel_nodes(const Step& step, void* graph, void* kernel, uint64_t count)
{
    Params params;
    params.kernel.function = kernel;
    params.kernel.grid = step.triple("grid");
    add({}, graph, rows[0], params, "cuGraphAddKernelNode_v2", count);
}

// graph setparams EXEC kernel [COUNT] [fn=] [kernel=]
void set_params(const Step& step)
{
    void* x = exec(step, step.word(1));
    if (step.word(2) != "kernel")
        wrong(step, "such nodes cannot be changed");
    auto function = function_of(step, "GraphExecKernelNodeSetParams", "_v2");
    auto params = params_of(step, NodeType::kernel, is_runtime(function));
    void* node = find_kernel_node(step, source_of(x));
    GraphCall call{.function = function, .kind = "setparams", .node = "kernel"};
    call.exec = exec_key(x);
    graph_calls(step, call, to_number(step, step.word(3, "1")),
                [&](void* f) { return call_symbol(f, x, node, &params.kernel); });
}

} // namespace workload
