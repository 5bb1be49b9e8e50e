// SPDX-License-Identifier: Apache-2.0
// Existing graphs and executable graphs, and the records of all that were ever created.
#include "graph.hpp"

#include "memory.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace standin {

constinit std::mutex graph_lock;

namespace {

// Never destroyed: programs destroy graphs in their own destructors. Graphs and executable graphs get their handles
// from one range, like pointers to heap objects. Arrays are indexed by is_exec.
auto& live = *new std::array<std::unordered_map<Handle, std::shared_ptr<Graph>>, 2>;
auto& handles = *new Arena(0x560000000000, 256);
auto& generations = *new std::array<std::unordered_map<Handle, uint64_t>, 2>;
auto& ledger = *new std::vector<std::shared_ptr<GraphRecord>>;

std::shared_ptr<Graph> find(bool is_exec, Handle handle)
{
    auto found = live[is_exec].find(handle);
    return found == live[is_exec].end() ? nullptr : found->second;
}

void update_counts(const Graph& graph)
{
    GraphRecord& r = *graph.record;
    r.counts = counts_of(graph.nodes);
}

int destroy(bool is_exec, Handle handle)
{
    auto graph = find(is_exec, handle);
    if (!graph)
        return invalid_value;
    update_counts(*graph);
    graph->record->destroyed = true;
    for (const Node& node : graph->nodes)
        for (Handle body : node.bodies)
            destroy_graph(body);
    drop(*graph);
    return success;
}

NodeCounts counts_of(const Node& node)
{
    switch (node.type) {
    case NodeType::kernel:
        return {.kernels = 1};
    case NodeType::memcpy:
        return {.copies = 1};
    case NodeType::memset:
        return {.memsets = 1};
    case NodeType::host:
        return {.host = 1};
    case NodeType::graph: {
        NodeCounts counts = node.child ? node.child->counts : NodeCounts{};
        counts.children++;
        return counts;
    }
    default:
        return {.others = 1};
    }
}

} // namespace

NodeCounts counts_of(const Nodes& nodes)
{
    NodeCounts counts = {};
    for (const Node& node : nodes)
        counts += counts_of(node);
    return counts;
}

std::shared_ptr<Graph> make_graph(bool is_exec)
{
    auto graph = std::make_shared<Graph>();
    Handle handle = handles.take(1).address;
    graph->record = std::make_shared<GraphRecord>(GraphRecord{.is_exec = is_exec, .handle = handle});
    return live[is_exec][handle] = graph;
}

Handle publish(Graph& graph)
{
    GraphRecord& r = *graph.record;
    r.generation = ++generations[r.is_exec][r.handle];
    ledger.push_back(graph.record);
    return r.handle;
}

void drop(Graph& graph)
{
    Handle handle = graph.record->handle;
    live[graph.record->is_exec].erase(handle);
    handles.give_back({handle, 256});
}

std::shared_ptr<Graph> find_graph(Handle handle)
{
    return find(false, handle);
}

std::shared_ptr<Graph> find_exec(Handle handle)
{
    return find(true, handle);
}

int destroy_graph(Handle handle)
{
    return destroy(false, handle);
}

int destroy_exec(Handle handle)
{
    return destroy(true, handle);
}

Nodes copy_of(const Nodes& nodes)
{
    Nodes copy;
    for (const Node& node : nodes) {
        copy.push_back(node);
        copy.back().bodies.clear();
        copy.back().origin = &node;
    }
    return copy;
}

std::shared_ptr<Contents> contents_of(const Graph& graph)
{
    return std::make_shared<Contents>(Contents{copy_of(graph.nodes), counts_of(graph.nodes)});
}

void append(Graph& graph, Node node, Node** out)
{
    graph.nodes.push_back(std::move(node));
    if (out)
        *out = &graph.nodes.back();
}

int add_node(Node** out, Handle handle, Node node)
{
    std::lock_guard hold(graph_lock);
    auto graph = find_graph(handle);
    if (!graph)
        return invalid_value;
    append(*graph, std::move(node), out);
    return success;
}

} // namespace standin

using namespace standin;

// Number of graphs, or executable graphs, that have had this handle so far.
CONTROL(uint64_t, standin_graph_generation)(Handle handle, bool is_exec)
{
    std::lock_guard hold(graph_lock);
    auto& of_type = generations[is_exec];
    auto found = of_type.find(handle);
    return found == of_type.end() ? 0 : found->second;
}

// Number of kernels that a launch of this executable graph starts.
CONTROL(uint64_t, standin_graph_kernels)(Handle handle)
{
    std::lock_guard hold(graph_lock);
    auto exec = find_exec(handle);
    return exec ? counts_of(exec->nodes).kernels : 0;
}

// Calls `each` for every graph and executable graph ever created, in order of creation.
CONTROL(void, standin_graphs)(void (*each)(const GraphRecord*, void*), void* argument)
{
    std::lock_guard hold(graph_lock);
    for (const auto& of_type : live)
        for (const auto& [handle, graph] : of_type)
            update_counts(*graph);
    for (const auto& record : ledger)
        each(record.get(), argument);
}

// For a forked child: existing graphs stay usable, but only the parent's truth file lists them.
CONTROL(void, standin_forget_graphs)()
{
    std::lock_guard hold(graph_lock);
    ledger.clear();
}

DRIVER(cuGraphCreate)(Handle* out, unsigned)
{
    return locked_call(Class::graph_call, graph_lock, [&] {
        *out = publish(*make_graph());
        return success;
    });
}

DRIVER(cuGraphClone)(Handle* out, Handle from)
{
    return locked_call(Class::graph_call, graph_lock, [&]() -> int {
        auto original = find_graph(from);
        if (!original)
            return invalid_value;
        auto graph = make_graph();
        for (Node& node : copy_of(original->nodes)) {
            node.origin = nullptr;
            append(*graph, std::move(node));
        }
        graph->record->graph = from;
        graph->record->graph_generation = original->record->generation;
        *out = publish(*graph);
        return success;
    });
}

RETURNS(cuGraphDestroy, (Handle graph),
        locked_call(Class::graph_call, graph_lock, [&] { return destroy_graph(graph); }))

DRIVER(cuGraphGetNodes)(Handle handle, Node** nodes, size_t* count)
{
    std::lock_guard hold(graph_lock);
    auto graph = find_graph(handle);
    if (!graph)
        return invalid_value;
    for (size_t i = 0; nodes && i < std::min(*count, graph->nodes.size()); i++)
        nodes[i] = &graph->nodes[i];
    *count = graph->nodes.size();
    return success;
}

DRIVER(cuGraphNodeGetType)(const Node* node, NodeType* type)
{
    *type = node->type;
    return success;
}
