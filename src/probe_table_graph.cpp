// SPDX-License-Identifier: Apache-2.0
#include "probe_table.hpp"

namespace gpusnoop {
namespace {

constexpr TableEntry table[] = {
    // Building
    {"cuGraphCreate", single, driver, any_runtime, KIND_GRAPH_NEW, "out:rdi"},
    {"cuGraphClone", single, driver, any_runtime, KIND_GRAPH_NEW, "out:rdi graph:rsi"},
    {"cuGraphAddKernelNode", single, driver, any_runtime, KIND_GRAPH_NODE, "kernel-node graph:rsi"},
    {"cuGraphAddKernelNode_v2", single, driver, any_runtime, KIND_GRAPH_NODE, "kernel-node graph:rsi"},
    {"cuGraphAddMemcpyNode", single, driver, any_runtime, KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"cuGraphAddMemsetNode", single, driver, any_runtime, KIND_GRAPH_NODE, "set-node graph:rsi"},
    {"cuGraphAddHostNode", single, driver, any_runtime, KIND_GRAPH_NODE, "host-node graph:rsi"},
    {"cuGraphAddChildGraphNode", single, driver, any_runtime, KIND_GRAPH_NODE, "graph:rsi child:r8"},
    {"cuGraphAddEmptyNode", single, driver, any_runtime, KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cuGraphAddEventRecordNode", single, driver, any_runtime, KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cuGraphAddEventWaitNode", single, driver, any_runtime, KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cuGraphAddExternalSemaphoresSignalNode", single, driver, any_runtime, KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cuGraphAddExternalSemaphoresWaitNode", single, driver, any_runtime, KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cuGraphAddBatchMemOpNode", single, driver, any_runtime, KIND_GRAPH_NODE, "other-node graph:rsi"},
    // CUgraphNodeParams: a type, then what goes with it
    {"cuGraphAddNode", single, driver, any_runtime, KIND_GRAPH_NODE, "graph:rsi node_type:r8[0.l] child:r8[16]"},
    {"cuGraphAddNode_v2", single, driver, any_runtime, KIND_GRAPH_NODE, "graph:rsi node_type:r9[0.l] child:r9[16]"},
    {"cuGraphDestroy", single, driver, any_runtime, KIND_GRAPH_GONE, "graph:rdi"},

    // Executing
    {"cuGraphInstantiate", single, driver, any_runtime, KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"cuGraphInstantiate_v2", single, driver, any_runtime, KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"cuGraphInstantiateWithFlags", single, driver, any_runtime, KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"cuGraphInstantiateWithParams", ptsz, driver, any_runtime, KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"cuGraphUpload", ptsz, driver, any_runtime, KIND_GRAPH_UPLOAD, "func:rdi stream:rsi"},
    {"cuGraphExecUpdate", single, driver, any_runtime, KIND_GRAPH_UPDATE, "func:rdi graph:rsi out:rcx"},
    {"cuGraphExecUpdate_v2", single, driver, any_runtime, KIND_GRAPH_UPDATE, "func:rdi graph:rsi out:rdx"},
    {"cuGraphExecKernelNodeSetParams", single, driver, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecKernelNodeSetParams_v2", single, driver, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecMemcpyNodeSetParams", single, driver, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecMemsetNodeSetParams", single, driver, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecHostNodeSetParams", single, driver, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecChildGraphNodeSetParams", single, driver, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecEventRecordNodeSetEvent", single, driver, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecEventWaitNodeSetEvent", single, driver, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecExternalSemaphoresSignalNodeSetParams", single, driver, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecExternalSemaphoresWaitNodeSetParams", single, driver, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecBatchMemOpNodeSetParams", single, driver, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecNodeSetParams", single, driver, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphNodeSetEnabled", single, driver, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecDestroy", single, driver, any_runtime, KIND_EXEC_GONE, "func:rdi"},

    // Streams join a capture by waiting for an event that was recorded in it.
    {"cuEventRecord", ptsz, driver, any_runtime, KIND_EVENT_RECORD, "handle:rdi stream:rsi"},
    {"cuEventRecordWithFlags", ptsz, driver, any_runtime, KIND_EVENT_RECORD, "handle:rdi stream:rsi"},
    {"cuStreamWaitEvent", ptsz, driver, any_runtime, KIND_EVENT_WAIT, "stream:rdi handle:rsi"},

    // The same, runtime
    {"cudaStreamBeginCapture", ptsz, runtime, any_runtime, KIND_CAPTURE_BEGIN, "stream:rdi"},
    {"cudaStreamBeginCaptureToGraph", ptsz, runtime, any_runtime, KIND_CAPTURE_BEGIN, "stream:rdi graph:rsi"},
    {"cudaStreamEndCapture", ptsz, runtime, any_runtime, KIND_CAPTURE_END, "stream:rdi out:rsi"},
    {"cudaGraphCreate", single, runtime, any_runtime, KIND_GRAPH_NEW, "out:rdi"},
    {"cudaGraphClone", single, runtime, any_runtime, KIND_GRAPH_NEW, "out:rdi graph:rsi"},
    {"cudaGraphAddKernelNode", single, runtime, any_runtime, KIND_GRAPH_NODE, "kernel-node graph:rsi"},
    {"cudaGraphAddMemcpyNode", single, runtime, any_runtime, KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"cudaGraphAddMemcpyNode1D", single, runtime, any_runtime, KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"cudaGraphAddMemcpyNodeFromSymbol", single, runtime, any_runtime, KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"cudaGraphAddMemcpyNodeToSymbol", single, runtime, any_runtime, KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"cudaGraphAddMemsetNode", single, runtime, any_runtime, KIND_GRAPH_NODE, "set-node graph:rsi"},
    {"cudaGraphAddHostNode", single, runtime, any_runtime, KIND_GRAPH_NODE, "host-node graph:rsi"},
    {"cudaGraphAddChildGraphNode", single, runtime, any_runtime, KIND_GRAPH_NODE, "graph:rsi child:r8"},
    {"cudaGraphAddEmptyNode", single, runtime, any_runtime, KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cudaGraphAddEventRecordNode", single, runtime, any_runtime, KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cudaGraphAddEventWaitNode", single, runtime, any_runtime, KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cudaGraphAddExternalSemaphoresSignalNode", single, runtime, any_runtime, KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cudaGraphAddExternalSemaphoresWaitNode", single, runtime, any_runtime, KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cudaGraphAddNode", single, runtime, cudart12, KIND_GRAPH_NODE, "graph:rsi node_type:r8[0.l] child:r8[16]"},
    {"cudaGraphAddNode", single, runtime, cudart13, KIND_GRAPH_NODE, "graph:rsi node_type:r9[0.l] child:r9[16]"},
    {"cudaGraphAddNode_v2", single, runtime, cudart12, KIND_GRAPH_NODE, "graph:rsi node_type:r9[0.l] child:r9[16]"},
    {"cudaGraphDestroy", single, runtime, any_runtime, KIND_GRAPH_GONE, "graph:rdi"},
    {"cudaGraphInstantiate", single, runtime, any_runtime, KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"cudaGraphInstantiateWithFlags", single, runtime, any_runtime, KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"cudaGraphInstantiateWithParams", ptsz, runtime, any_runtime, KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"cudaGraphUpload", ptsz, runtime, any_runtime, KIND_GRAPH_UPLOAD, "func:rdi stream:rsi"},
    {"cudaGraphExecUpdate", single, runtime, cudart11, KIND_GRAPH_UPDATE, "func:rdi graph:rsi out:rcx"},
    {"cudaGraphExecUpdate", single, runtime, cudart12 | cudart13, KIND_GRAPH_UPDATE, "func:rdi graph:rsi out:rdx"},
    {"cudaGraphExecKernelNodeSetParams", single, runtime, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecMemcpyNodeSetParams", single, runtime, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecMemcpyNodeSetParams1D", single, runtime, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecMemcpyNodeSetParamsFromSymbol", single, runtime, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecMemcpyNodeSetParamsToSymbol", single, runtime, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecMemsetNodeSetParams", single, runtime, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecHostNodeSetParams", single, runtime, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecChildGraphNodeSetParams", single, runtime, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecEventRecordNodeSetEvent", single, runtime, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecEventWaitNodeSetEvent", single, runtime, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecExternalSemaphoresSignalNodeSetParams", single, runtime, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecExternalSemaphoresWaitNodeSetParams", single, runtime, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecNodeSetParams", single, runtime, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphNodeSetEnabled", single, runtime, any_runtime, KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecDestroy", single, runtime, any_runtime, KIND_EXEC_GONE, "func:rdi"},
};

} // namespace

std::span<const TableEntry> graph_entries()
{
    return table;
}

} // namespace gpusnoop
