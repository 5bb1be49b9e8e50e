// SPDX-License-Identifier: Apache-2.0
// Executable graphs: instantiation, upload, launch, update. A launch runs only the host functions of the graph.
#include "capture.hpp"

#include <utility>

using namespace standin;

namespace {

int instantiate(Handle* out, Handle handle)
{
    if (int result = begin(Class::graph_call))
        return result;
    std::lock_guard hold(graph_lock);
    auto graph = find_graph(handle);
    if (!out || !graph)
        return invalid_value;
    auto exec = make_exec();
    exec->nodes = copy_of(graph->nodes);
    exec->record->graph = handle;
    exec->record->graph_generation = graph->record->generation;
    publish(*exec);
    *out = exec->record->handle;
    return success;
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

unsigned update(GraphExec& exec, const Graph& graph)
{
    if (unsigned armed = std::exchange(thread.next_update_result, 0))
        return armed;
    Nodes nodes = copy_of(graph.nodes);
    if (unsigned why = compare(exec.nodes, nodes))
        return why;
    // Each new node inherits two fields of the old node: `origin`, by which change() finds a node, and `enabled`.
    for (size_t i = 0; i < nodes.size(); i++) {
        nodes[i].origin = exec.nodes[i].origin;
        nodes[i].enabled = exec.nodes[i].enabled;
    }
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
    if (!result && (!exec || !graph || !why))
        result = invalid_value;
    if (!exec || !why)
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
    if (int result = begin(Class::graph_call))
        return result;
    std::lock_guard hold(graph_lock);
    auto exec = find_exec(handle);
    if (!exec || !node)
        return invalid_value;
    for (Node& candidate : exec->nodes)
        if (candidate.origin == node)
            return change(candidate, *exec->record);
    return invalid_value;
}

int set_params(Handle exec, const Node* node, NodeType type, const void* params)
{
    return change(exec, node, [&](Node& mine, GraphRecord& record) -> int {
        if (mine.type != type || !params)
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

// Collects the host functions of enabled nodes, also in child graphs.
void collect_host_functions(const Nodes& nodes, std::vector<std::pair<HostFunction, void*>>& out)
{
    for (const Node& node : nodes) {
        if (node.host && node.enabled)
            out.emplace_back(node.host, node.argument);
        if (node.child && node.child->counts.host)
            collect_host_functions(node.child->nodes, out);
    }
}

int launch(GraphExec& exec, Stream* stream)
{
    std::vector<std::pair<HostFunction, void*>> functions;
    if (capturing(stream)) {
        std::shared_ptr<Contents> contents;
        {
            std::lock_guard hold(graph_lock);
            contents = std::make_shared<Contents>(Contents{copy_of(exec.nodes), counts_of(exec.nodes)});
        }
        return record(stream, {.type = NodeType::graph, .child = contents});
    }
    {
        std::lock_guard hold(graph_lock);
        collect_host_functions(exec.nodes, functions);
    }
    for (auto [function, argument] : functions)
        function(argument);
    return success;
}

std::shared_ptr<GraphExec> find_now(Handle handle)
{
    std::lock_guard hold(graph_lock);
    return find_exec(handle);
}

} // namespace

DRIVER(cuGraphInstantiate)(Handle* out, Handle graph, void*, char*, size_t)
{
    return instantiate(out, graph);
}
DRIVER(cuGraphInstantiate_v2)(Handle* out, Handle graph, void*, char*, size_t)
{
    return instantiate(out, graph);
}
DRIVER(cuGraphInstantiateWithFlags)(Handle* out, Handle graph, uint64_t)
{
    return instantiate(out, graph);
}
DRIVER(cuGraphInstantiateWithParams)(Handle* out, Handle graph, InstantiateParams* params)
{
    int result = params ? instantiate(out, graph) : begin(Class::graph_call);
    if (!params)
        return result ? result : invalid_value;
    params->result = result ? 1 : 0;
    return result;
}

DRIVER(cuGraphExecDestroy)(Handle exec)
{
    if (int result = begin(Class::graph_call))
        return result;
    std::lock_guard hold(graph_lock);
    return destroy_exec(exec) ? success : invalid_value;
}

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

DRIVER(cuGraphExecUpdate)(Handle exec, Handle graph, Node** error_node, unsigned* result)
{
    if (error_node)
        *error_node = nullptr;
    return update(exec, graph, result);
}
DRIVER(cuGraphExecUpdate_v2)(Handle exec, Handle graph, UpdateResult* info)
{
    if (info)
        *info = {};
    return update(exec, graph, info ? &info->result : nullptr);
}

DRIVER(cuGraphNodeSetEnabled)(Handle exec, const Node* node, unsigned enabled)
{
    return change(exec, node, [&](Node& mine, GraphRecord&) -> int {
        if (mine.type != NodeType::kernel && mine.type != NodeType::memcpy && mine.type != NodeType::memset)
            return invalid_value;
        mine.enabled = enabled;
        return success;
    });
}

DRIVER(cuGraphExecNodeSetParams)(Handle exec, const Node* node, const GenericNode* params)
{
    return set_params(exec, node, params ? params->type : NodeType::other, params ? params->of_type : nullptr);
}

// The new child graph must have the same shape.
DRIVER(cuGraphExecChildGraphNodeSetParams)(Handle exec, const Node* node, Handle child)
{
    return change(exec, node, [&](Node& mine, GraphRecord& record) -> int {
        auto graph = find_graph(child);
        if (mine.type != NodeType::graph || !graph)
            return invalid_value;
        Nodes nodes = copy_of(graph->nodes);
        if (!mine.child || compare(mine.child->nodes, nodes))
            return graph_update_failure;
        mine.child = std::make_shared<Contents>(Contents{std::move(nodes), counts_of(graph->nodes)});
        record.set_params++;
        return success;
    });
}

#define SET_PARAMS(name, type)                                                                                         \
    DRIVER(name)(Handle exec, const Node* node, const void* params)                                                    \
    {                                                                                                                  \
        return set_params(exec, node, NodeType::type, params);                                                         \
    }
SET_PARAMS(cuGraphExecKernelNodeSetParams, kernel)
SET_PARAMS(cuGraphExecKernelNodeSetParams_v2, kernel)
SET_PARAMS(cuGraphExecMemcpyNodeSetParams, memcpy)
SET_PARAMS(cuGraphExecMemsetNodeSetParams, memset)
SET_PARAMS(cuGraphExecHostNodeSetParams, host)
SET_PARAMS(cuGraphExecEventRecordNodeSetEvent, event_record)
SET_PARAMS(cuGraphExecEventWaitNodeSetEvent, event_wait)
SET_PARAMS(cuGraphExecExternalSemaphoresSignalNodeSetParams, semaphore_signal)
SET_PARAMS(cuGraphExecExternalSemaphoresWaitNodeSetParams, semaphore_wait)
SET_PARAMS(cuGraphExecBatchMemOpNodeSetParams, memop)
