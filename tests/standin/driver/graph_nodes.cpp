// SPDX-License-Identifier: Apache-2.0
// Functions that add nodes to graphs and remove nodes. Those for nodes that allocate and free memory are in memory.cpp.
#include "graph.hpp"

#include "../abi_allocation.hpp"

using namespace standin;

// Defined in memory.cpp; cuGraphAddNode calls them for nodes that allocate and free memory.
DRIVER(cuGraphAddMemAllocNode)(Node**, Handle, const void*, size_t, AllocationNode*);
DRIVER(cuGraphAddMemFreeNode)(Node**, Handle, const void*, size_t, uintptr_t);

namespace {

// CUDA 11's CUDA_KERNEL_NODE_PARAMS has no field for a CUkernel.
int make_kernel(Node& node, const KernelNodeParams* params, bool with_kernel)
{
    if (!params)
        return invalid_value;
    void* function = params->function || !with_kernel ? params->function : params->kernel;
    if (!function)
        return invalid_handle;
    node = kernel_node(function, params->grid, params->block, params->shared);
    return success;
}

int make_host(Node& node, const HostNodeParams* params)
{
    if (!params || !params->function)
        return invalid_value;
    node = host_node(params->function, params->argument);
    return success;
}

int make_child(Node& node, Handle handle)
{
    std::lock_guard hold(graph_lock);
    auto graph = find_graph(handle);
    if (!graph)
        return invalid_value;
    node = {.type = NodeType::graph,
            .child = std::make_shared<Contents>(Contents{copy_of(graph->nodes), counts_of(graph->nodes)})};
    return success;
}

// Creates the bodies of the node: empty graphs to which the program adds nodes.
int make_conditional(Node& node, ConditionalNode& params)
{
    static thread_local std::vector<Handle> bodies;
    if (!params.size)
        return invalid_value;
    std::lock_guard hold(graph_lock);
    node = {.type = NodeType::conditional};
    for (unsigned i = 0; i < params.size; i++) {
        auto body = make_graph();
        body->record->body = true;
        publish(*body);
        node.bodies.push_back(body->record->handle);
    }
    bodies = node.bodies;
    params.bodies = bodies.data();
    return success;
}

int make_generic(Node& node, GenericNode& params)
{
    switch (params.type) {
    case NodeType::kernel:
        return make_kernel(node, &params.as<KernelNodeParams>(), true);
    case NodeType::host:
        return make_host(node, &params.as<HostNodeParams>());
    case NodeType::graph:
        return make_child(node, params.as<Handle>());
    case NodeType::conditional:
        return make_conditional(node, params.as<ConditionalNode>());
    default:
        node = {.type = params.type};
        return params.type > NodeType::conditional ? invalid_value : success;
    }
}

template<class Make>
int add(Node** out, Handle graph, Make make)
{
    if (int result = begin(Class::graph_call))
        return result;
    Node node;
    {
        std::lock_guard hold(graph_lock);
        if (!find_graph(graph))
            return invalid_value;
    }
    int result = make(node);
    return result ? result : add_node(out, graph, std::move(node));
}

int add_generic(Node** out, Handle graph, GenericNode* params)
{
    if (params && params->type == NodeType::alloc)
        return impl_cuGraphAddMemAllocNode(out, graph, nullptr, 0, &params->as<AllocationNode>());
    if (params && params->type == NodeType::free)
        return impl_cuGraphAddMemFreeNode(out, graph, nullptr, 0, params->as<uintptr_t>());
    return add(out, graph, [&](Node& node) { return params ? make_generic(node, *params) : invalid_value; });
}

} // namespace

DRIVER(cuGraphAddKernelNode)
(Node** out, Handle graph, const void*, size_t, const KernelNodeParams* params)
{
    return add(out, graph, [&](Node& node) { return make_kernel(node, params, false); });
}
DRIVER(cuGraphAddKernelNode_v2)
(Node** out, Handle graph, const void*, size_t, const KernelNodeParams* params)
{
    return add(out, graph, [&](Node& node) { return make_kernel(node, params, true); });
}
DRIVER(cuGraphAddHostNode)(Node** out, Handle graph, const void*, size_t, const HostNodeParams* params)
{
    return add(out, graph, [&](Node& node) { return make_host(node, params); });
}
DRIVER(cuGraphAddChildGraphNode)(Node** out, Handle graph, const void*, size_t, Handle child)
{
    return add(out, graph, [&](Node& node) { return make_child(node, child); });
}
DRIVER(cuGraphAddEmptyNode)(Node** out, Handle graph, const void*, size_t)
{
    return add(out, graph, [](Node&) { return success; });
}
DRIVER(cuGraphAddNode)(Node** out, Handle graph, const void*, size_t, GenericNode* params)
{
    return add_generic(out, graph, params);
}
DRIVER(cuGraphAddNode_v2)(Node** out, Handle graph, const void*, const void*, size_t, GenericNode* params)
{
    return add_generic(out, graph, params);
}

// Nodes whose parameters are not read. The pointer to the parameters must not be null.
#define ADD(name, type_)                                                                                               \
    DRIVER(name)(Node * *out, Handle graph, const void*, size_t, const void* params)                                   \
    {                                                                                                                  \
        return add(out, graph, [&](Node& node) {                                                                       \
            node.type = NodeType::type_;                                                                               \
            return params ? success : invalid_value;                                                                   \
        });                                                                                                            \
    }
ADD(cuGraphAddMemcpyNode, memcpy)
ADD(cuGraphAddMemsetNode, memset)
ADD(cuGraphAddEventRecordNode, event_record)
ADD(cuGraphAddEventWaitNode, event_wait)
ADD(cuGraphAddExternalSemaphoresSignalNode, semaphore_signal)
ADD(cuGraphAddExternalSemaphoresWaitNode, semaphore_wait)
ADD(cuGraphAddBatchMemOpNode, memop)

DRIVER(cuGraphConditionalHandleCreate)(uint64_t* out, Handle graph, Context*, unsigned, unsigned)
{
    static std::atomic<uint64_t> next{1};
    if (int result = begin(Class::graph_call))
        return result;
    std::lock_guard hold(graph_lock);
    if (!out || !find_graph(graph))
        return invalid_value;
    *out = next++;
    return success;
}

DRIVER(cuGraphDestroyNode)(Node* node)
{
    if (int result = begin(Class::graph_call))
        return result;
    std::lock_guard hold(graph_lock);
    if (!node || node->destroyed || !node->graph)
        return invalid_value;
    node->destroyed = true;
    for (Handle body : node->bodies)
        destroy_graph(body);
    return success;
}
