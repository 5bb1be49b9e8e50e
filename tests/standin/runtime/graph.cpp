// SPDX-License-Identifier: Apache-2.0
// Graphs and capture. Each function makes one driver call. Before that, it replaces kernels by the driver's function
// handles, and converts descriptions of copies to the driver's structure.
#include "runtime.hpp"

using namespace standin;

namespace {

#define NODE void **out, void *graph, const void *dependencies, size_t count
#define PASS_NODE out, graph, dependencies, count

// Copies only the fields that both structures have: the runtime's structure ends after `extra`.
int translate(KernelNodeParams& out, const KernelNodeParams* p)
{
    if (int result = before_call())
        return result;
    out = {nullptr, p->grid, p->block, p->shared, p->arguments, p->extra, nullptr, nullptr};
    return find_function(p->function, &out.function);
}

// Replaces the kernel by the driver's function handle; copies other parameters unchanged.
int translate(GenericNode& out, const GenericNode* p)
{
    if (int result = before_call())
        return result;
    out = *p;
    auto& kernel = out.as<KernelNodeParams>();
    return p->type == NodeType::kernel ? find_function(p->as<KernelNodeParams>().function, &kernel.function) : success;
}

// Copies the driver's output fields back to the caller's structure.
void copy_outputs(GenericNode& to, const GenericNode& from)
{
    if (to.type == NodeType::alloc)
        to.as<AllocationNode>().address = from.as<AllocationNode>().address;
    if (to.type == NodeType::conditional)
        to.as<ConditionalNode>().bodies = from.as<ConditionalNode>().bodies;
}

Copy3D line(const void* destination, const void* source, size_t bytes, int kind)
{
    RuntimeCopy3D copy = {};
    copy.source.pointer.pointer = const_cast<void*>(source);
    copy.destination.pointer.pointer = const_cast<void*>(destination);
    copy.extent = {bytes, 1, 1};
    copy.kind = kind;
    return volume(copy);
}

} // namespace

STANDIN_SAME_PTSZ(StreamBeginCapture, (void* stream, int mode), stream, mode)
STANDIN_SAME_PTSZ(StreamBeginCaptureToGraph,
                  (void* stream, void* graph, const void* dependencies, const void* data, size_t count, int mode),
                  stream, graph, dependencies, data, count, mode)
STANDIN_SAME_PTSZ(StreamEndCapture, (void* stream, void** graph), stream, graph)

STANDIN_SAME(GraphCreate, (void** graph, unsigned flags), graph, flags)
STANDIN_SAME(GraphClone, (void** clone, void* graph), clone, graph)
STANDIN_SAME(GraphDestroy, (void* graph), graph)
STANDIN_SAME(GraphGetNodes, (void* graph, void** nodes, size_t* count), graph, nodes, count)
STANDIN_SAME(GraphConditionalHandleCreate, (uint64_t * out, void* graph, unsigned value, unsigned flags), out, graph,
             nullptr, value, flags)

RUNTIME(cudaGraphAddKernelNode)(NODE, const KernelNodeParams* params)
{
    KernelNodeParams translated;
    int result = translate(translated, params);
    return finish(result ? result : driver().cuGraphAddKernelNode[legacy](PASS_NODE, &translated));
}

STANDIN_SAME(GraphAddMemcpyNode, (NODE, const RuntimeCopy3D* copy), PASS_NODE, at(volume(*copy)), nullptr)
STANDIN_ONE(cudaGraphAddMemcpyNode1D, (NODE, void* to, const void* from, size_t bytes, int kind), cuGraphAddMemcpyNode,
            PASS_NODE, at(line(to, from, bytes, kind)), nullptr)
STANDIN_ONE(cudaGraphAddMemcpyNodeToSymbol,
            (NODE, const void* symbol, const void* from, size_t bytes, size_t offset, int kind), cuGraphAddMemcpyNode,
            PASS_NODE, at(line(variable(symbol, offset), from, bytes, kind)), nullptr)
STANDIN_ONE(cudaGraphAddMemcpyNodeFromSymbol,
            (NODE, void* to, const void* symbol, size_t bytes, size_t offset, int kind), cuGraphAddMemcpyNode,
            PASS_NODE, at(line(to, variable(symbol, offset), bytes, kind)), nullptr)
STANDIN_SAME(GraphAddMemsetNode, (NODE, const MemsetNode* set), PASS_NODE, set, nullptr)
STANDIN_SAME(GraphAddHostNode, (NODE, const HostNodeParams* params), PASS_NODE, params)
STANDIN_SAME(GraphAddChildGraphNode, (NODE, void* child), PASS_NODE, child)
STANDIN_SAME(GraphAddEmptyNode, (NODE), PASS_NODE)
STANDIN_SAME(GraphAddEventRecordNode, (NODE, void* event), PASS_NODE, event)
STANDIN_SAME(GraphAddEventWaitNode, (NODE, void* event), PASS_NODE, event)
STANDIN_SAME(GraphAddExternalSemaphoresSignalNode, (NODE, const void* params), PASS_NODE, params)
STANDIN_SAME(GraphAddExternalSemaphoresWaitNode, (NODE, const void* params), PASS_NODE, params)
STANDIN_SAME(GraphAddMemAllocNode, (NODE, AllocationNode* node), PASS_NODE, node)
STANDIN_SAME(GraphAddMemFreeNode, (NODE, void* address), PASS_NODE, address)

// In CUDA 12, only cudaGraphAddNode_v2 takes edge data; in CUDA 13, cudaGraphAddNode does.
#if CUDART < 13
RUNTIME(cudaGraphAddNode)(NODE, GenericNode* params)
{
    GenericNode translated;
    int result = translate(translated, params);
    if (!result)
        result = driver().add_node(PASS_NODE, &translated);
    if (!result)
        copy_outputs(*params, translated);
    return finish(result);
}
#define WITH_EDGES cudaGraphAddNode_v2
#else
#define WITH_EDGES cudaGraphAddNode
#endif
RUNTIME(WITH_EDGES)
(void** out, void* graph, const void* dependencies, const void* data, size_t count, GenericNode* params)
{
    GenericNode translated;
    int result = translate(translated, params);
    if (!result)
        result = driver().add_node_with_edges(out, graph, dependencies, data, count, &translated);
    if (!result)
        copy_outputs(*params, translated);
    return finish(result);
}

// As in CUDA 12 and 13: takes flags. In CUDA 11, the function takes three other arguments in their place.
STANDIN_ONE(cudaGraphInstantiate, (void** exec, void* graph, uint64_t flags), cuGraphInstantiateWithFlags, exec, graph,
            flags)
STANDIN_SAME(GraphInstantiateWithFlags, (void** exec, void* graph, uint64_t flags), exec, graph, flags)
STANDIN_SAME_PTSZ(GraphInstantiateWithParams, (void** exec, void* graph, InstantiateParams* params), exec, graph,
                  params)
STANDIN_SAME_PTSZ(GraphUpload, (void* exec, void* stream), exec, stream)
STANDIN_SAME_PTSZ(GraphLaunch, (void* exec, void* stream), exec, stream)
STANDIN_SAME(GraphExecDestroy, (void* exec), exec)
// As in CUDA 12 and 13: takes a structure. In CUDA 11, the function takes a node and a result in its place.
STANDIN_SAME(GraphExecUpdate, (void* exec, void* graph, void* info), exec, graph, info)

RUNTIME(cudaGraphExecKernelNodeSetParams)(void* exec, void* node, const KernelNodeParams* params)
{
    KernelNodeParams translated;
    int result = translate(translated, params);
    return finish(result ? result : driver().cuGraphExecKernelNodeSetParams[legacy](exec, node, &translated));
}

RUNTIME(cudaGraphExecNodeSetParams)(void* exec, void* node, const GenericNode* params)
{
    GenericNode translated;
    int result = translate(translated, params);
    return finish(result ? result : driver().cuGraphExecNodeSetParams[legacy](exec, node, &translated));
}

#define CHANGE void *exec, void *node
STANDIN_SAME(GraphExecMemcpyNodeSetParams, (CHANGE, const RuntimeCopy3D* copy), exec, node, at(volume(*copy)), nullptr)
STANDIN_ONE(cudaGraphExecMemcpyNodeSetParams1D, (CHANGE, void* to, const void* from, size_t bytes, int kind),
            cuGraphExecMemcpyNodeSetParams, exec, node, at(line(to, from, bytes, kind)), nullptr)
STANDIN_ONE(cudaGraphExecMemcpyNodeSetParamsToSymbol,
            (CHANGE, const void* symbol, const void* from, size_t bytes, size_t offset, int kind),
            cuGraphExecMemcpyNodeSetParams, exec, node, at(line(variable(symbol, offset), from, bytes, kind)), nullptr)
STANDIN_ONE(cudaGraphExecMemcpyNodeSetParamsFromSymbol,
            (CHANGE, void* to, const void* symbol, size_t bytes, size_t offset, int kind),
            cuGraphExecMemcpyNodeSetParams, exec, node, at(line(to, variable(symbol, offset), bytes, kind)), nullptr)
STANDIN_SAME(GraphExecMemsetNodeSetParams, (CHANGE, const MemsetNode* set), exec, node, set, nullptr)
STANDIN_SAME(GraphExecHostNodeSetParams, (CHANGE, const HostNodeParams* params), exec, node, params)
STANDIN_SAME(GraphExecChildGraphNodeSetParams, (CHANGE, void* child), exec, node, child)
STANDIN_SAME(GraphExecEventRecordNodeSetEvent, (CHANGE, void* event), exec, node, event)
STANDIN_SAME(GraphExecEventWaitNodeSetEvent, (CHANGE, void* event), exec, node, event)
STANDIN_SAME(GraphExecExternalSemaphoresSignalNodeSetParams, (CHANGE, const void* params), exec, node, params)
STANDIN_SAME(GraphExecExternalSemaphoresWaitNodeSetParams, (CHANGE, const void* params), exec, node, params)
