// SPDX-License-Identifier: Apache-2.0
// Existing graphs and executable graphs, and the records of all that were ever created.
#include "graph.hpp"

#include "memory.hpp"

#include <array>
#include <unordered_map>

namespace standin {

constinit std::mutex graph_lock;

namespace {

// Never destroyed: programs destroy graphs in their own destructors. Graphs and executable graphs get their handles
// from one range, like pointers to heap objects.
template<class T>
using Live = std::unordered_map<Handle, std::shared_ptr<T>>;
auto& graphs = *new Live<Graph>;
auto& execs = *new Live<GraphExec>;
auto& handles = *new Arena(0x560000000000, 256);
auto& generations = *new std::array<std::unordered_map<Handle, uint64_t>, 2>; // indexed by is_exec
auto& ledger = *new std::vector<std::shared_ptr<GraphRecord>>;

template<class T>
std::shared_ptr<T> make(Live<T>& live, bool is_exec)
{
    auto object = std::make_shared<T>();
    Handle handle = handles.take(1).address;
    object->record = std::make_shared<GraphRecord>(GraphRecord{.is_exec = is_exec, .handle = handle});
    return live[handle] = object;
}

template<class T>
std::shared_ptr<T> find(const Live<T>& live, Handle handle)
{
    auto found = live.find(handle);
    return found == live.end() ? nullptr : found->second;
}

template<class T>
void remove(Live<T>& live, Handle handle)
{
    live.erase(handle);
    handles.give_back({handle, 256});
}

void add_to_ledger(const std::shared_ptr<GraphRecord>& record)
{
    record->generation = ++generations[record->is_exec][record->handle];
    ledger.push_back(record);
}

template<class T>
void update_counts(const T& object)
{
    GraphRecord& r = *object.record;
    r.counts = counts_of(object.nodes);
    r.disabled = 0;
    for (const Node& node : object.nodes)
        r.disabled += node.type == NodeType::kernel && !node.enabled && !node.destroyed;
}

NodeCounts counts_of(const Node& node)
{
    if (node.destroyed)
        return {};
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

std::shared_ptr<Graph> make_graph()
{
    return make(graphs, false);
}
std::shared_ptr<GraphExec> make_exec()
{
    return make(execs, true);
}
void publish(Graph& graph)
{
    add_to_ledger(graph.record);
}
void publish(GraphExec& exec)
{
    add_to_ledger(exec.record);
}
void drop(Graph& graph)
{
    remove(graphs, graph.record->handle);
}
std::shared_ptr<Graph> find_graph(Handle handle)
{
    return find(graphs, handle);
}
std::shared_ptr<GraphExec> find_exec(Handle handle)
{
    return find(execs, handle);
}

bool destroy_graph(Handle handle)
{
    auto graph = find_graph(handle);
    if (!graph)
        return false;
    update_counts(*graph);
    graph->record->destroyed = true;
    for (const Node& node : graph->nodes)
        for (Handle body : node.bodies)
            destroy_graph(body);
    remove(graphs, handle);
    return true;
}

bool destroy_exec(Handle handle)
{
    auto exec = find_exec(handle);
    if (!exec)
        return false;
    update_counts(*exec);
    exec->record->destroyed = true;
    remove(execs, handle);
    return true;
}

Nodes copy_of(const Nodes& nodes)
{
    Nodes copy;
    for (const Node& node : nodes)
        if (!node.destroyed) {
            copy.push_back(node);
            copy.back().graph = nullptr;
            copy.back().bodies.clear();
            copy.back().origin = &node;
        }
    return copy;
}

void append(Graph& graph, Node node, Node** out)
{
    node.graph = &graph;
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
    if (!exec)
        return 0;
    update_counts(*exec);
    return exec->record->counts.kernels - exec->record->disabled;
}

// Calls `each` for every graph and executable graph ever created, in order of creation.
CONTROL(void, standin_graphs)(void (*each)(const GraphRecord*, void*), void* argument)
{
    std::lock_guard hold(graph_lock);
    for (const auto& [handle, graph] : graphs)
        update_counts(*graph);
    for (const auto& [handle, exec] : execs)
        update_counts(*exec);
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
    if (int result = begin(Class::graph_call))
        return result;
    if (!out)
        return invalid_value;
    std::lock_guard hold(graph_lock);
    auto graph = make_graph();
    publish(*graph);
    *out = graph->record->handle;
    return success;
}

DRIVER(cuGraphClone)(Handle* out, Handle from)
{
    if (int result = begin(Class::graph_call))
        return result;
    std::lock_guard hold(graph_lock);
    auto original = find_graph(from);
    if (!out || !original)
        return invalid_value;
    auto graph = make_graph();
    for (Node& node : copy_of(original->nodes)) {
        node.origin = nullptr;
        append(*graph, std::move(node));
    }
    graph->record->graph = from;
    graph->record->graph_generation = original->record->generation;
    publish(*graph);
    *out = graph->record->handle;
    return success;
}

DRIVER(cuGraphDestroy)(Handle graph)
{
    if (int result = begin(Class::graph_call))
        return result;
    std::lock_guard hold(graph_lock);
    return destroy_graph(graph) ? success : invalid_value;
}

DRIVER(cuGraphGetNodes)(Handle handle, Node** nodes, size_t* count)
{
    std::lock_guard hold(graph_lock);
    auto graph = find_graph(handle);
    if (!graph || !count)
        return invalid_value;
    size_t room = nodes ? *count : 0;
    *count = 0;
    for (Node& node : graph->nodes)
        if (!node.destroyed) {
            if (*count < room)
                nodes[*count] = &node;
            ++*count;
        }
    return success;
}

DRIVER(cuGraphNodeGetType)(const Node* node, NodeType* type)
{
    if (!node || !type)
        return invalid_value;
    *type = node->type;
    return success;
}
