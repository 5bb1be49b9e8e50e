// SPDX-License-Identifier: Apache-2.0
// Executable graphs: instantiation, upload, launch, update. A launch runs only the host functions of the graph.
#include "capture.hpp"

#include <algorithm>
#include <utility>

using namespace standin;

namespace {

int instantiate(Handle* out, Handle handle)
{
    return locked_call(Class::graph_call, graph_lock, [&]() -> int {
        auto graph = find_graph(handle);
        if (!graph)
            return invalid_value;
        auto exec = make_graph(true);
        exec->nodes = copy_of(graph->nodes);
        exec->record->graph = handle;
        exec->record->graph_generation = graph->record->generation;
        *out = publish(*exec);
        return success;
    });
}

// Returns a CUgraphExecUpdateResult: an error unless both graphs have the same shape.
unsigned compare(const Nodes& have, const Nodes& want)
{
    if (have.size() != want.size())
        return 2; // topology changed
    for (size_t i = 0; i < have.size(); i++) {
        if (have[i].type != want[i].type)
            return 3; // node type changed
        if (have[i].child && want[i].child)
            if (unsigned why = compare(have[i].child->nodes, want[i].child->nodes))
                return why;
    }
    return 0;
}

unsigned update(Graph& exec, const Graph& graph)
{
    if (unsigned armed = std::exchange(thread.next_update_result, 0))
        return armed;
    Nodes nodes = copy_of(graph.nodes);
    if (unsigned why = compare(exec.nodes, nodes))
        return why;
    for (size_t i = 0; i < nodes.size(); i++)
        nodes[i].origin = exec.nodes[i].origin; // by which change() finds a node
    exec.nodes = std::move(nodes);
    return 0;
}

// Stores the update result in `why`: 0, the reason of a failed update, or 1 (error) if a test made the call fail. If
// the executable graph does not exist, `why` is unchanged.
int update(Handle exec_handle, Handle graph_handle, unsigned* why)
{
    int result = begin(Class::graph_call);
    std::lock_guard hold(graph_lock);
    auto exec = find_exec(exec_handle);
    auto graph = find_graph(graph_handle);
    if (!result && (!exec || !graph))
        result = invalid_value;
    if (!exec)
        return result;
    *why = result ? 1 : update(*exec, *graph);
    GraphRecord& r = *exec->record;
    (*why ? r.failed_updates : r.updates)++;
    r.update_result = *why;
    return result || !*why ? result : static_cast<int>(graph_update_failure);
}

// Changes the node of this executable graph that was instantiated from `node`.
template<class Change>
int change(Handle handle, const Node* node, Change change)
{
    return locked_call(Class::graph_call, graph_lock, [&]() -> int {
        auto exec = find_exec(handle);
        if (!exec || !node)
            return invalid_value;
        auto found = std::ranges::find(exec->nodes, node, &Node::origin);
        return found == exec->nodes.end() ? static_cast<int>(invalid_value) : change(*found, *exec->record);
    });
}

int set_params(Handle exec, const Node* node, NodeType type, const void* params)
{
    return change(exec, node, [&](Node& mine, GraphRecord& record) -> int {
        if (mine.type != type)
            return invalid_value;
        if (type == NodeType::kernel) {
            auto& kernel = *static_cast<const KernelNodeParams*>(params);
            mine.function = kernel.function;
            mine.grid = kernel.grid, mine.block = kernel.block, mine.shared = kernel.shared;
        }
        if (type == NodeType::host) {
            auto& host = *static_cast<const HostNodeParams*>(params);
            mine.host = host.function, mine.argument = host.argument;
        }
        record.set_params++;
        return success;
    });
}

// Collects the host functions of the nodes, also in child graphs.
void collect_host_functions(const Nodes& nodes, std::vector<std::pair<HostFunction, void*>>& out)
{
    for (const Node& node : nodes) {
        if (node.host)
            out.emplace_back(node.host, node.argument);
        if (node.child && node.child->counts.host)
            collect_host_functions(node.child->nodes, out);
    }
}

int launch(Graph& exec, Stream* stream)
{
    std::vector<std::pair<HostFunction, void*>> functions;
    std::unique_lock hold(graph_lock);
    if (capturing(stream)) {
        auto contents = contents_of(exec);
        hold.unlock();
        return record(stream, {.type = NodeType::graph, .child = contents});
    }
    collect_host_functions(exec.nodes, functions);
    hold.unlock();
    for (auto [function, argument] : functions)
        function(argument);
    return success;
}

std::shared_ptr<Graph> find_now(Handle handle)
{
    std::lock_guard hold(graph_lock);
    return find_exec(handle);
}

} // namespace

RETURNS(cuGraphInstantiate, (Handle * out, Handle graph, void*, char*, size_t), instantiate(out, graph))
RETURNS(cuGraphInstantiate_v2, (Handle * out, Handle graph, void*, char*, size_t), instantiate(out, graph))
RETURNS(cuGraphInstantiateWithFlags, (Handle * out, Handle graph, uint64_t), instantiate(out, graph))
DRIVER(cuGraphInstantiateWithParams)(Handle* out, Handle graph, InstantiateParams* params)
{
    int result = instantiate(out, graph);
    params->result = result ? 1 : 0;
    return result;
}

RETURNS(cuGraphExecDestroy, (Handle exec),
        locked_call(Class::graph_call, graph_lock, [&] { return destroy_exec(exec); }))

DRIVER(cuGraphUpload)(Handle handle, Stream* stream)
{
    auto exec = find_now(handle);
    if (int result = begin(Class::graph_call))
        return result;
    if (capturing(stream))
        return refuse_under_capture(stream);
    if (!exec)
        return invalid_value;
    std::lock_guard hold(graph_lock);
    exec->record->uploads++;
    return success;
}

// Keeps a reference to the executable graph during the launch, because another thread may destroy it meanwhile.
DRIVER(cuGraphLaunch)(Handle handle, Stream* stream)
{
    auto exec = find_now(handle);
    int result = begin(Class::graph_launch);
    if (!exec)
        return result ? result : invalid_value;
    if (!result)
        result = launch(*exec, stream);
    std::lock_guard hold(graph_lock);
    (result ? exec->record->failed_launches : exec->record->launches)++;
    return result;
}

RETURNS(cuGraphExecUpdate, (Handle exec, Handle graph, Node**, unsigned* result), update(exec, graph, result))
RETURNS(cuGraphExecUpdate_v2, (Handle exec, Handle graph, UpdateResult* info), update(exec, graph, &info->result))

DRIVER(cuGraphExecNodeSetParams)(Handle exec, const Node* node, const GenericNode* params)
{
    return set_params(exec, node, params->type, params->of_type);
}

// The new child graph must have the same shape.
DRIVER(cuGraphExecChildGraphNodeSetParams)(Handle exec, const Node* node, Handle child)
{
    return change(exec, node, [&](Node& mine, GraphRecord& record) -> int {
        auto graph = find_graph(child);
        if (mine.type != NodeType::graph || !graph)
            return invalid_value;
        auto contents = contents_of(*graph);
        if (!mine.child || compare(mine.child->nodes, contents->nodes))
            return graph_update_failure;
        mine.child = contents;
        record.set_params++;
        return success;
    });
}

#define CHANGE Handle exec, const Node *node, const void *params
RETURNS(cuGraphExecKernelNodeSetParams, (CHANGE), set_params(exec, node, NodeType::kernel, params))
RETURNS(cuGraphExecKernelNodeSetParams_v2, (CHANGE), set_params(exec, node, NodeType::kernel, params))
RETURNS(cuGraphExecMemcpyNodeSetParams, (CHANGE), set_params(exec, node, NodeType::memcpy, params))
RETURNS(cuGraphExecMemsetNodeSetParams, (CHANGE), set_params(exec, node, NodeType::memset, params))
RETURNS(cuGraphExecHostNodeSetParams, (CHANGE), set_params(exec, node, NodeType::host, params))
RETURNS(cuGraphExecEventRecordNodeSetEvent, (CHANGE), set_params(exec, node, NodeType::event_record, params))
RETURNS(cuGraphExecEventWaitNodeSetEvent, (CHANGE), set_params(exec, node, NodeType::event_wait, params))
RETURNS(cuGraphExecExternalSemaphoresSignalNodeSetParams, (CHANGE),
        set_params(exec, node, NodeType::semaphore_signal, params))
RETURNS(cuGraphExecExternalSemaphoresWaitNodeSetParams, (CHANGE),
        set_params(exec, node, NodeType::semaphore_wait, params))
RETURNS(cuGraphExecBatchMemOpNodeSetParams, (CHANGE), set_params(exec, node, NodeType::memop, params))
