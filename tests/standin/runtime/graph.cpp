// SPDX-License-Identifier: Apache-2.0
// Graphs and capture. Each function makes one driver call. Before that, it replaces kernels by the driver's function
// handles, and converts descriptions of copies to the driver's structure.
#include "runtime.hpp"

using namespace standin;

namespace {

#define NODE void **out, void *graph, const void *dependencies, size_t count
#define PASS_NODE out, graph, dependencies, count

// Returns the address of a temporary, which is valid until the end of the full expression.
template<class T>
const T* at(const T& value)
{
    return &value;
}

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

RuntimeCopy3D line(const void* destination, const void* source, size_t bytes, int kind)
{
    RuntimeCopy3D copy = {};
    copy.source.pointer.pointer = const_cast<void*>(source);
    copy.destination.pointer.pointer = const_cast<void*>(destination);
    copy.extent = {bytes, 1, 1};
    copy.kind = kind;
    return copy;
}

// The stand-in does not register device variables, so it uses the address of the host symbol.
const void* variable(const void* symbol, size_t offset)
{
    return static_cast<const char*>(symbol) + offset;
}

} // namespace

STANDIN_PTSZ(cudaStreamBeginCapture, (void* stream, int mode), cuStreamBeginCapture, stream, mode)
STANDIN_PTSZ(cudaStreamBeginCaptureToGraph,
             (void* stream, void* graph, const void* dependencies, const void* data, size_t count, int mode),
             cuStreamBeginCaptureToGraph, stream, graph, dependencies, data, count, mode)
STANDIN_PTSZ(cudaStreamEndCapture, (void* stream, void** graph), cuStreamEndCapture, stream, graph)
STANDIN_PTSZ(cudaStreamIsCapturing, (void* stream, int* status), cuStreamIsCapturing, stream, status)
STANDIN_ONE(cudaThreadExchangeStreamCaptureMode, (int* mode), cuThreadExchangeStreamCaptureMode, mode)

STANDIN_ONE(cudaGraphCreate, (void** graph, unsigned flags), cuGraphCreate, graph, flags)
STANDIN_ONE(cudaGraphClone, (void** clone, void* graph), cuGraphClone, clone, graph)
STANDIN_ONE(cudaGraphDestroy, (void* graph), cuGraphDestroy, graph)
STANDIN_ONE(cudaGraphDestroyNode, (void* node), cuGraphDestroyNode, node)
STANDIN_ONE(cudaGraphGetNodes, (void* graph, void** nodes, size_t* count), cuGraphGetNodes, graph, nodes, count)
STANDIN_ONE(cudaGraphConditionalHandleCreate, (uint64_t * out, void* graph, unsigned value, unsigned flags),
            cuGraphConditionalHandleCreate, out, graph, nullptr, value, flags)

RUNTIME(cudaGraphAddKernelNode)(NODE, const KernelNodeParams* params)
{
    KernelNodeParams translated;
    int result = translate(translated, params);
    return finish(result ? result : driver().cuGraphAddKernelNode[legacy](PASS_NODE, &translated));
}

STANDIN_ONE(cudaGraphAddMemcpyNode, (NODE, const RuntimeCopy3D* copy), cuGraphAddMemcpyNode, PASS_NODE,
            at(volume(*copy)), nullptr)
STANDIN_ONE(cudaGraphAddMemcpyNode1D, (NODE, void* to, const void* from, size_t bytes, int kind), cuGraphAddMemcpyNode,
            PASS_NODE, at(volume(line(to, from, bytes, kind))), nullptr)
STANDIN_ONE(cudaGraphAddMemcpyNodeToSymbol,
            (NODE, const void* symbol, const void* from, size_t bytes, size_t offset, int kind), cuGraphAddMemcpyNode,
            PASS_NODE, at(volume(line(variable(symbol, offset), from, bytes, kind))), nullptr)
STANDIN_ONE(cudaGraphAddMemcpyNodeFromSymbol,
            (NODE, void* to, const void* symbol, size_t bytes, size_t offset, int kind), cuGraphAddMemcpyNode,
            PASS_NODE, at(volume(line(to, variable(symbol, offset), bytes, kind))), nullptr)
STANDIN_ONE(cudaGraphAddMemsetNode, (NODE, const MemsetNode* set), cuGraphAddMemsetNode, PASS_NODE, set, nullptr)
STANDIN_ONE(cudaGraphAddHostNode, (NODE, const HostNodeParams* params), cuGraphAddHostNode, PASS_NODE, params)
STANDIN_ONE(cudaGraphAddChildGraphNode, (NODE, void* child), cuGraphAddChildGraphNode, PASS_NODE, child)
STANDIN_ONE(cudaGraphAddEmptyNode, (NODE), cuGraphAddEmptyNode, PASS_NODE)
STANDIN_ONE(cudaGraphAddEventRecordNode, (NODE, void* event), cuGraphAddEventRecordNode, PASS_NODE, event)
STANDIN_ONE(cudaGraphAddEventWaitNode, (NODE, void* event), cuGraphAddEventWaitNode, PASS_NODE, event)
STANDIN_ONE(cudaGraphAddExternalSemaphoresSignalNode, (NODE, const void* params),
            cuGraphAddExternalSemaphoresSignalNode, PASS_NODE, params)
STANDIN_ONE(cudaGraphAddExternalSemaphoresWaitNode, (NODE, const void* params), cuGraphAddExternalSemaphoresWaitNode,
            PASS_NODE, params)
STANDIN_ONE(cudaGraphAddMemAllocNode, (NODE, AllocationNode* node), cuGraphAddMemAllocNode, PASS_NODE, node)
STANDIN_ONE(cudaGraphAddMemFreeNode, (NODE, void* address), cuGraphAddMemFreeNode, PASS_NODE, address)

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
STANDIN_ONE(cudaGraphInstantiateWithFlags, (void** exec, void* graph, uint64_t flags), cuGraphInstantiateWithFlags,
            exec, graph, flags)
STANDIN_PTSZ(cudaGraphInstantiateWithParams, (void** exec, void* graph, InstantiateParams* params),
             cuGraphInstantiateWithParams, exec, graph, params)
STANDIN_PTSZ(cudaGraphUpload, (void* exec, void* stream), cuGraphUpload, exec, stream)
STANDIN_PTSZ(cudaGraphLaunch, (void* exec, void* stream), cuGraphLaunch, exec, stream)
STANDIN_ONE(cudaGraphExecDestroy, (void* exec), cuGraphExecDestroy, exec)
// As in CUDA 12 and 13: takes a structure. In CUDA 11, the function takes a node and a result in its place.
STANDIN_ONE(cudaGraphExecUpdate, (void* exec, void* graph, void* info), cuGraphExecUpdate, exec, graph, info)
STANDIN_ONE(cudaGraphNodeSetEnabled, (void* exec, void* node, unsigned enabled), cuGraphNodeSetEnabled, exec, node,
            enabled)

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
STANDIN_ONE(cudaGraphExecMemcpyNodeSetParams, (CHANGE, const RuntimeCopy3D* copy), cuGraphExecMemcpyNodeSetParams, exec,
            node, at(volume(*copy)), nullptr)
STANDIN_ONE(cudaGraphExecMemcpyNodeSetParams1D, (CHANGE, void* to, const void* from, size_t bytes, int kind),
            cuGraphExecMemcpyNodeSetParams, exec, node, at(volume(line(to, from, bytes, kind))), nullptr)
STANDIN_ONE(cudaGraphExecMemcpyNodeSetParamsToSymbol,
            (CHANGE, const void* symbol, const void* from, size_t bytes, size_t offset, int kind),
            cuGraphExecMemcpyNodeSetParams, exec, node, at(volume(line(variable(symbol, offset), from, bytes, kind))),
            nullptr)
STANDIN_ONE(cudaGraphExecMemcpyNodeSetParamsFromSymbol,
            (CHANGE, void* to, const void* symbol, size_t bytes, size_t offset, int kind),
            cuGraphExecMemcpyNodeSetParams, exec, node, at(volume(line(to, variable(symbol, offset), bytes, kind))),
            nullptr)
STANDIN_ONE(cudaGraphExecMemsetNodeSetParams, (CHANGE, const MemsetNode* set), cuGraphExecMemsetNodeSetParams, exec,
            node, set, nullptr)
STANDIN_ONE(cudaGraphExecHostNodeSetParams, (CHANGE, const HostNodeParams* params), cuGraphExecHostNodeSetParams, exec,
            node, params)
STANDIN_ONE(cudaGraphExecChildGraphNodeSetParams, (CHANGE, void* child), cuGraphExecChildGraphNodeSetParams, exec, node,
            child)
STANDIN_ONE(cudaGraphExecEventRecordNodeSetEvent, (CHANGE, void* event), cuGraphExecEventRecordNodeSetEvent, exec, node,
            event)
STANDIN_ONE(cudaGraphExecEventWaitNodeSetEvent, (CHANGE, void* event), cuGraphExecEventWaitNodeSetEvent, exec, node,
            event)
STANDIN_ONE(cudaGraphExecExternalSemaphoresSignalNodeSetParams, (CHANGE, const void* params),
            cuGraphExecExternalSemaphoresSignalNodeSetParams, exec, node, params)
STANDIN_ONE(cudaGraphExecExternalSemaphoresWaitNodeSetParams, (CHANGE, const void* params),
            cuGraphExecExternalSemaphoresWaitNodeSetParams, exec, node, params)
