// SPDX-License-Identifier: Apache-2.0
// Functions that add nodes to graphs. Those for nodes that allocate and free memory are in memory.cpp.
#include "graph.hpp"

#include "../abi_allocation.hpp"

using namespace standin;

// Defined in memory.cpp; cuGraphAddNode calls them for nodes that allocate and free memory.
DRIVER(cuGraphAddMemAllocNode)(Node**, Handle, const void*, size_t, AllocationNode*);
DRIVER(cuGraphAddMemFreeNode)(Node**, Handle, const void*, size_t, uintptr_t);

namespace {

// CUDA 11's CUDA_KERNEL_NODE_PARAMS has no field for a CUkernel.
int make_kernel(Node& node, const KernelNodeParams& params, bool with_kernel)
{
    void* function = params.function || !with_kernel ? params.function : params.kernel;
    if (!function)
        return invalid_handle;
    node = kernel_node(function, params.grid, params.block, params.shared);
    return success;
}

int make_host(Node& node, const HostNodeParams& params)
{
    if (!params.function)
        return invalid_value;
    node = host_node(params.function, params.argument);
    return success;
}

int make_child(Node& node, Handle handle)
{
    std::lock_guard hold(graph_lock);
    auto graph = find_graph(handle);
    if (!graph)
        return invalid_value;
    node = {.type = NodeType::graph, .child = contents_of(*graph)};
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
    for (unsigned i = 0; i < params.size; i++)
        node.bodies.push_back(publish(*make_graph()));
    bodies = node.bodies;
    params.bodies = bodies.data();
    return success;
}

int make_generic(Node& node, GenericNode& params)
{
    switch (params.type) {
    case NodeType::kernel:
        return make_kernel(node, params.as<KernelNodeParams>(), true);
    case NodeType::host:
        return make_host(node, params.as<HostNodeParams>());
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
    {
        std::lock_guard hold(graph_lock);
        if (!find_graph(graph))
            return invalid_value;
    }
    Node node;
    int result = make(node);
    return result ? result : add_node(out, graph, std::move(node));
}

// Nodes whose parameters are not read.
int add_plain(Node** out, Handle graph, NodeType type)
{
    return add(out, graph, [&](Node& node) { return node.type = type, success; });
}

int add_generic(Node** out, Handle graph, GenericNode* params)
{
    if (params->type == NodeType::alloc)
        return impl_cuGraphAddMemAllocNode(out, graph, nullptr, 0, &params->as<AllocationNode>());
    if (params->type == NodeType::free)
        return impl_cuGraphAddMemFreeNode(out, graph, nullptr, 0, params->as<uintptr_t>());
    return add(out, graph, [&](Node& node) { return make_generic(node, *params); });
}

} // namespace

#define TO_GRAPH Node **out, Handle graph, const void *, size_t
RETURNS(cuGraphAddKernelNode, (TO_GRAPH, const KernelNodeParams* params),
        add(out, graph, [&](Node& node) { return make_kernel(node, *params, false); }))
RETURNS(cuGraphAddKernelNode_v2, (TO_GRAPH, const KernelNodeParams* params),
        add(out, graph, [&](Node& node) { return make_kernel(node, *params, true); }))
RETURNS(cuGraphAddHostNode, (TO_GRAPH, const HostNodeParams* params),
        add(out, graph, [&](Node& node) { return make_host(node, *params); }))
RETURNS(cuGraphAddChildGraphNode, (TO_GRAPH, Handle child),
        add(out, graph, [&](Node& node) { return make_child(node, child); }))
RETURNS(cuGraphAddNode, (TO_GRAPH, GenericNode* params), add_generic(out, graph, params))
RETURNS(cuGraphAddNode_v2, (Node * *out, Handle graph, const void*, const void*, size_t, GenericNode* params),
        add_generic(out, graph, params))
RETURNS(cuGraphAddEmptyNode, (TO_GRAPH), add_plain(out, graph, NodeType::empty))
RETURNS(cuGraphAddMemcpyNode, (TO_GRAPH), add_plain(out, graph, NodeType::memcpy))
RETURNS(cuGraphAddMemsetNode, (TO_GRAPH), add_plain(out, graph, NodeType::memset))
RETURNS(cuGraphAddEventRecordNode, (TO_GRAPH), add_plain(out, graph, NodeType::event_record))
RETURNS(cuGraphAddEventWaitNode, (TO_GRAPH), add_plain(out, graph, NodeType::event_wait))
RETURNS(cuGraphAddExternalSemaphoresSignalNode, (TO_GRAPH), add_plain(out, graph, NodeType::semaphore_signal))
RETURNS(cuGraphAddExternalSemaphoresWaitNode, (TO_GRAPH), add_plain(out, graph, NodeType::semaphore_wait))
RETURNS(cuGraphAddBatchMemOpNode, (TO_GRAPH), add_plain(out, graph, NodeType::memop))

DRIVER(cuGraphConditionalHandleCreate)(uint64_t* out, Handle graph, Context*, unsigned, unsigned)
{
    return locked_call(Class::graph_call, graph_lock, [&]() -> int {
        static uint64_t last;
        if (!find_graph(graph))
            return invalid_value;
        *out = ++last;
        return success;
    });
}
