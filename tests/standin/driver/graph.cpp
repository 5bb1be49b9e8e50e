// SPDX-License-Identifier: Apache-2.0
// Graphs: building, instantiating, launching, updating. Launching runs the host nodes; kernels do nothing, as anywhere.
#include "graph.hpp"

#include <mutex>

using namespace standin;

namespace {

std::mutex lock; // over the nodes of all graphs

int add(Node** out, Graph* graph, const Node& node)
{
    if (!graph)
        return invalid_value;
    std::lock_guard hold(lock);
    graph->nodes.push_back(node);
    if (out)
        *out = &graph->nodes.back();
    return success;
}

int add_kernel(Node** out, Graph* graph, const KernelNodeParams* params, void* function)
{
    if (!params || !function)
        return params ? invalid_handle : invalid_value;
    return add(out, graph, {NodeType::kernel, function, params->grid, params->block, params->shared, nullptr, nullptr});
}

int instantiate(GraphExec** out, const Graph* graph)
{
    if (!out || !graph)
        return invalid_value;
    std::lock_guard hold(lock);
    *out = new GraphExec{graph->nodes};
    return success;
}

// 0 if the graph has the shape that was instantiated, else CUgraphExecUpdateResult.
unsigned update(GraphExec* exec, const Graph* graph)
{
    std::lock_guard hold(lock);
    if (exec->nodes.size() != graph->nodes.size())
        return 2;
    for (size_t i = 0; i < exec->nodes.size(); i++)
        if (exec->nodes[i].type != graph->nodes[i].type)
            return 3;
    exec->nodes = graph->nodes;
    return 0;
}

} // namespace

int standin::record(Graph* graph, const Node& node)
{
    return add(nullptr, graph, node);
}

int standin::add_node(Node** out, Graph* graph, const Node& node)
{
    return add(out, graph, node);
}

DRIVER(cuGraphCreate)(Graph** out, unsigned)
{
    if (!out)
        return invalid_value;
    *out = new Graph;
    return success;
}

DRIVER(cuGraphClone)(Graph** out, const Graph* graph)
{
    if (!out || !graph)
        return invalid_value;
    std::lock_guard hold(lock);
    *out = new Graph{*graph};
    return success;
}

DRIVER(cuGraphDestroy)(Graph* graph)
{
    if (!graph)
        return invalid_value;
    delete graph;
    return success;
}

DRIVER(cuGraphAddKernelNode)
(Node** out, Graph* graph, const void*, size_t, const KernelNodeParams* params)
{
    return add_kernel(out, graph, params, params ? params->function : nullptr);
}

DRIVER(cuGraphAddKernelNode_v2)
(Node** out, Graph* graph, const void*, size_t, const KernelNodeParams* params)
{
    return add_kernel(out, graph, params, !params ? nullptr : params->function ? params->function : params->kernel);
}

DRIVER(cuGraphAddHostNode)(Node** out, Graph* graph, const void*, size_t, const HostNodeParams* params)
{
    if (!params || !params->function)
        return invalid_value;
    return add(out, graph, {NodeType::host, nullptr, {}, {}, 0, params->function, params->argument});
}

DRIVER(cuGraphAddMemcpyNode)(Node** out, Graph* graph, const void*, size_t, const void*, Context*)
{
    return add(out, graph, {.type = NodeType::memcpy});
}

DRIVER(cuGraphAddMemsetNode)(Node** out, Graph* graph, const void*, size_t, const void*, Context*)
{
    return add(out, graph, {.type = NodeType::memset});
}

DRIVER(cuGraphAddEmptyNode)(Node** out, Graph* graph, const void*, size_t)
{
    return add(out, graph, {.type = NodeType::empty});
}

DRIVER(cuGraphAddChildGraphNode)(Node** out, Graph* graph, const void*, size_t, Graph*)
{
    return add(out, graph, {.type = NodeType::graph});
}

DRIVER(cuGraphGetNodes)(Graph* graph, Node** nodes, size_t* count)
{
    if (!graph || !count)
        return invalid_value;
    std::lock_guard hold(lock);
    size_t room = nodes ? *count : 0;
    *count = graph->nodes.size();
    for (size_t i = 0; i < room && i < *count; i++)
        nodes[i] = &graph->nodes[i];
    return success;
}

DRIVER(cuGraphNodeGetType)(const Node* node, int* type)
{
    if (!node || !type)
        return invalid_value;
    *type = static_cast<int>(node->type);
    return success;
}

DRIVER(cuGraphInstantiate)(GraphExec** out, Graph* graph, void*, char*, size_t)
{
    return instantiate(out, graph);
}
DRIVER(cuGraphInstantiate_v2)(GraphExec** out, Graph* graph, void*, char*, size_t)
{
    return instantiate(out, graph);
}
DRIVER(cuGraphInstantiateWithFlags)(GraphExec** out, Graph* graph, uint64_t)
{
    return instantiate(out, graph);
}

DRIVER(cuGraphInstantiateWithParams)(GraphExec** out, Graph* graph, InstantiateParams* params)
{
    if (!params)
        return invalid_value;
    int result = instantiate(out, graph);
    params->result = result ? 1 : 0;
    return result;
}

DRIVER(cuGraphExecDestroy)(GraphExec* exec)
{
    if (!exec)
        return invalid_value;
    delete exec;
    return success;
}

DRIVER(cuGraphExecUpdate)(GraphExec* exec, Graph* graph, Node** error_node, unsigned* result)
{
    if (!exec || !graph || !result)
        return invalid_value;
    *result = update(exec, graph);
    if (error_node)
        *error_node = nullptr;
    return *result ? graph_update_failure : success;
}

DRIVER(cuGraphExecUpdate_v2)(GraphExec* exec, Graph* graph, UpdateResult* info)
{
    if (!exec || !graph || !info)
        return invalid_value;
    *info = {update(exec, graph), nullptr, nullptr};
    return info->result ? graph_update_failure : success;
}

DRIVER(cuGraphLaunch)(GraphExec* exec, Stream* stream)
{
    if (int result = begin(Class::graph_launch)) [[unlikely]]
        return result;
    if (!exec)
        return invalid_value;
    if (Graph* graph = capturing(stream))
        return add(nullptr, graph, {.type = NodeType::graph});
    for (const Node& node : exec->nodes)
        if (node.host)
            node.host(node.argument);
    return success;
}
