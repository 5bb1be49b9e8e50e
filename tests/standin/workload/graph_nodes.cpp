// SPDX-License-Identifier: Apache-2.0
// Graph nodes: adds them to graphs, changes them in executable graphs, and destroys them. To add a kind, add a row.
#include "graph.hpp"
#include "kernels.hpp"
#include "memory.hpp"
#include "symbols.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

namespace workload {
namespace {

using standin::GenericNode;
using standin::NodeType;

struct NodeRow {
    std::string_view name;
    NodeType type;
    const char* added_by;   // GraphAdd...
    const char* changed_by; // GraphExec...; null if it cannot be changed
    const char* driver_suffix = "";
};
const NodeRow rows[] = {
    {"kernel", NodeType::kernel, "KernelNode", "KernelNodeSetParams", "_v2"},
    {"memcpy", NodeType::memcpy, "MemcpyNode", "MemcpyNodeSetParams"},
    {"memset", NodeType::memset, "MemsetNode", "MemsetNodeSetParams"},
    {"host", NodeType::host, "HostNode", "HostNodeSetParams"},
    {"child", NodeType::graph, "ChildGraphNode", "ChildGraphNodeSetParams"},
    {"empty", NodeType::empty, "EmptyNode", nullptr},
    {"wait", NodeType::event_wait, "EventWaitNode", "EventWaitNodeSetEvent"},
    {"record", NodeType::event_record, "EventRecordNode", "EventRecordNodeSetEvent"},
    {"semsignal", NodeType::semaphore_signal, "ExternalSemaphoresSignalNode", "ExternalSemaphoresSignalNodeSetParams"},
    {"semwait", NodeType::semaphore_wait, "ExternalSemaphoresWaitNode", "ExternalSemaphoresWaitNodeSetParams"},
    {"memalloc", NodeType::alloc, "MemAllocNode", nullptr},
    {"memfree", NodeType::free, "MemFreeNode", nullptr},
    {"memop", NodeType::memop, "BatchMemOpNode", "BatchMemOpNodeSetParams"}, // driver API only
    {"conditional", NodeType::conditional, "Node", nullptr},                 // generic function only
};

const NodeRow& row_of(const Step& step, std::string_view name)
{
    auto row = std::ranges::find(rows, name, &NodeRow::name);
    if (row == std::end(rows))
        wrong(step, "no such node: " + std::string(name));
    return *row;
}

// Parameters of a node, in the driver's or the runtime's structure.
struct Params {
    standin::KernelNodeParams kernel = {};
    standin::Copy3D copy = {};
    standin::RuntimeCopy3D runtime_copy = {};
    standin::MemsetNode set = {};
    standin::HostNodeParams host = {};
    standin::AllocationNode allocation = {};
    uint64_t zeros[16] = {}; // for kinds whose parameters are not read
    void* handle = nullptr;  // a child graph, an event, an address

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
        case NodeType::alloc:
            return &allocation;
        case NodeType::graph:
        case NodeType::event_wait:
        case NodeType::event_record:
        case NodeType::free:
            return handle;
        default:
            return zeros;
        }
    }

    GenericNode generic(NodeType type) const
    {
        GenericNode node = {.type = type, .reserved = {}, .of_type = {}};
        auto put = [&](const auto& params) { std::memcpy(node.of_type, &params, sizeof params); };
        if (type == NodeType::kernel)
            put(kernel);
        else if (type == NodeType::memset)
            put(set);
        else if (type == NodeType::host)
            put(host);
        else if (type == NodeType::alloc)
            put(allocation);
        else if (type == NodeType::conditional)
            put(standin::ConditionalNode{.handle = 1, .type = 0, .size = 1, .bodies = nullptr, .context = nullptr});
        else if (handle)
            put(handle);
        return node;
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
    p.allocation.pool.type = 1; // CU_MEM_ALLOCATION_TYPE_PINNED: the only type
    p.allocation.pool.location = {standin::Location::device, device()};
    p.allocation.bytes = 4096;
    if (type == NodeType::graph)
        p.handle = graph(step, step.option("of", ""));
    if (type == NodeType::event_wait || type == NodeType::event_record)
        p.handle = event();
    return p;
}

bool is_generic(const std::string& function, const char* name)
{
    auto base = without_suffix(function);
    base = base.substr(0, base.find("_v2"));
    return base == std::string("cu") + name || base == std::string("cuda") + name;
}

// Returns the function to call: the option fn=, or else the generic function if the step demands it, or the function
// for this kind of node.
std::string function_for(const Step& step, const std::string& specific, const char* generic, const NodeRow& row,
                         bool driver_only)
{
    bool wanted = step.words.back() == "generic" || row.type == NodeType::conditional;
    auto function = driver_only && !wanted
                        ? step.option("fn", "cu" + specific)
                        : function_of(step, wanted ? generic : specific, wanted ? "" : row.driver_suffix);
    if (!is_generic(function, generic) && function.find(specific) == std::string::npos)
        wrong(step, function + " does not add or change such nodes");
    return function;
}

uint64_t count_of(const Step& step, size_t index)
{
    auto word = step.word(index, "1");
    return word == "generic" ? 1 : to_number(step, word);
}

std::mutex lock; // protects `allocations`
struct Allocation {
    void* address;
    uint64_t bytes;
};
std::map<void*, std::vector<Allocation>> allocations; // by graph

Allocation pop_allocation(const Step& step, void* graph)
{
    std::lock_guard hold(lock);
    auto& list = allocations[graph];
    if (list.empty())
        wrong(step, "this graph has no allocation to free");
    auto last = list.back();
    list.pop_back();
    return last;
}

// Calls a function that adds or changes a node of this kind, but not the generic one. `to` are the first arguments.
template<class... To>
int call_specific(void* f, const std::string& base, Params& params, NodeType type, To... to)
{
    if (base.ends_with("1D"))
        return call_symbol(f, to..., host_memory[1], host_memory[0], copied_bytes, 0);
    if (base.ends_with("Symbol")) // takes an offset and the kind
        return call_symbol(f, to..., host_memory[1], host_memory[0], copied_bytes, static_cast<size_t>(0),
                           base.find("To") != std::string::npos ? 1 : 2);
    return call_symbol(f, to..., params.of(type, is_runtime(base)), nullptr);
}

struct NodeToAdd {
    void* graph;
    const NodeRow& row;
    Params params;
    bool generic, edges;
    std::string base;
    void *node = nullptr, *body = nullptr;

    int call(void* f)
    {
        return generic ? call_generic(f)
                       : call_specific(f, base, params, row.type, &node, graph, nullptr, static_cast<size_t>(0));
    }

    int call_generic(void* f)
    {
        size_t none = 0;
        auto params_of_all = params.generic(row.type);
        int result = edges ? call_symbol(f, &node, graph, nullptr, nullptr, none, &params_of_all)
                           : call_symbol(f, &node, graph, nullptr, none, &params_of_all);
        params.allocation.address = params_of_all.as<standin::AllocationNode>().address;
        if (row.type == NodeType::conditional && !result)
            body = reinterpret_cast<void*>(params_of_all.as<standin::ConditionalNode>().bodies[0]);
        return result;
    }
};

// Calls that add allocation or free nodes are also recorded as allocations and frees.
void record_memory(const Step& step, const std::string& function, bool allocates, uint64_t bytes,
                   const Results& results)
{
    Call call = call_of(function, allocates ? "alloc" : "free");
    call.synchronous = false;
    call.data = Data{.bytes = bytes, .holding = standin::holding_names[static_cast<int>(standin::Holding::graph)]};
    add_results(call, results, Pace(step), is_runtime(function) ? without_suffix(nested_function(function)) : "");
}

void add(const Step& step, NodeToAdd& to_add, const std::string& function, uint64_t count)
{
    bool allocates = to_add.row.type == NodeType::alloc, frees = to_add.row.type == NodeType::free;
    GraphCall call{.function = function, .kind = "add", .node = std::string(to_add.row.name)};
    call.graph = graph_key(to_add.graph);
    if (to_add.row.type == NodeType::graph)
        call.source = graph_key(to_add.params.handle);
    if (!allocates && !frees) {
        graph_calls(step, call, count, [&](void* f) { return to_add.call(f); });
        return;
    }
    for (uint64_t i = 0; i < count && !stopping(); i++) {
        Allocation memory =
            frees ? pop_allocation(step, to_add.graph) : Allocation{nullptr, to_add.params.allocation.bytes};
        to_add.params.handle = memory.address;
        auto results = graph_calls(step, call, 1, [&](void* f) { return to_add.call(f); });
        record_memory(step, function, allocates, memory.bytes, results);
        std::lock_guard hold(lock);
        if (allocates && result_of(results) == 0)
            allocations[to_add.graph].push_back(
                {reinterpret_cast<void*>(to_add.params.allocation.address), memory.bytes});
    }
}

// Finds the first node of a kind in the driver's list of nodes.
void* find_node(const Step& step, void* graph, NodeType type)
{
    ready_driver();
    size_t count = 0;
    setup("cuGraphGetNodes", graph, nullptr, &count);
    std::vector<void*> nodes(count);
    setup("cuGraphGetNodes", graph, nodes.data(), &count);
    for (void* node : nodes) {
        auto found = NodeType::other;
        call_symbol(symbol("cuGraphNodeGetType"), node, &found);
        if (found == type)
            return node;
    }
    wrong(step, "the graph has no such node");
}

} // namespace

// graph add GRAPH KIND [COUNT] [generic] [fn=] [of=] [kernel=] [body=]
void add_nodes(const Step& step)
{
    const NodeRow& row = row_of(step, step.word(2));
    auto function =
        function_for(step, std::string("GraphAdd") + row.added_by, "GraphAddNode", row, row.type == NodeType::memop);
    bool runtime = is_runtime(function);
    auto base = without_suffix(function);
    NodeToAdd to_add{.graph = graph(step, step.word(1)),
                     .row = row,
                     .params = params_of(step, row.type, runtime),
                     .generic = is_generic(function, "GraphAddNode"),
                     .edges = base.ends_with("_v2") || (runtime && runtime_major >= 13),
                     .base = base};
    add(step, to_add, function, count_of(step, 3));
    if (step.has("body") && to_add.body)
        remember_graph(step.option("body", ""), to_add.body);
}

void add_kernel_nodes(const Step& step, void* graph, void* kernel, uint64_t count)
{
    static const Step nothing;
    NodeToAdd to_add{.graph = graph,
                     .row = rows[0],
                     .params = {},
                     .generic = false,
                     .edges = false,
                     .base = "cuGraphAddKernelNode_v2"};
    to_add.params.kernel.function = kernel;
    to_add.params.kernel.grid = step.triple("grid");
    add(nothing, to_add, to_add.base, count);
}

// graph setparams EXEC KIND [COUNT] [generic] [fn=] [of=] [kernel=]
void set_params(const Step& step)
{
    void* x = exec(step, step.word(1));
    const NodeRow& row = row_of(step, step.word(2));
    if (!row.changed_by)
        wrong(step, "such nodes cannot be changed");
    auto function = function_for(step, std::string("GraphExec") + row.changed_by, "GraphExecNodeSetParams", row,
                                 row.type == NodeType::memop);
    auto params = params_of(step, row.type, is_runtime(function));
    void* node = find_node(step, source_of(x), row.type);
    auto all = params.generic(row.type);
    GraphCall call{.function = function, .kind = "setparams", .node = std::string(row.name)};
    call.exec = exec_key(x);
    if (row.type == NodeType::graph)
        call.source = graph_key(params.handle);
    graph_calls(step, call, count_of(step, 3), [&](void* f) {
        return is_generic(function, "GraphExecNodeSetParams")
                   ? call_symbol(f, x, node, &all)
                   : call_specific(f, without_suffix(function), params, row.type, x, node);
    });
}

} // namespace workload
