// SPDX-License-Identifier: Apache-2.0
#include "probes/probe_table.hpp"

namespace gpusnoop {
namespace {

constexpr TableEntry table[] = {
    // Building
    {"cuGraphCreate", KIND_GRAPH_NEW, "out:rdi"},
    {"cuGraphClone", KIND_GRAPH_NEW, "out:rdi graph:rsi"},
    {"cuGraphAddKernelNode", KIND_GRAPH_NODE, "kernel-node graph:rsi"},
    {"cuGraphAddKernelNode_v2", KIND_GRAPH_NODE, "kernel-node graph:rsi"},
    {"cuGraphAddMemcpyNode", KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"cuGraphAddMemsetNode", KIND_GRAPH_NODE, "set-node graph:rsi"},
    {"cuGraphAddHostNode", KIND_GRAPH_NODE, "host-node graph:rsi"},
    {"cuGraphAddChildGraphNode", KIND_GRAPH_NODE, "graph:rsi child:r8"},
    {"cuGraphAddEmptyNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cuGraphAddEventRecordNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cuGraphAddEventWaitNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cuGraphAddExternalSemaphoresSignalNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cuGraphAddExternalSemaphoresWaitNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cuGraphAddBatchMemOpNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    // CUgraphNodeParams: a type, then what goes with it
    {"cuGraphAddNode", KIND_GRAPH_NODE, "graph:rsi node_type:r8[0.l] child:r8[16]"},
    {"cuGraphAddNode_v2", KIND_GRAPH_NODE, "graph:rsi node_type:r9[0.l] child:r9[16]"},
    {"cuGraphDestroy", KIND_GRAPH_GONE, "graph:rdi"},

    // Executing
    {"cuGraphInstantiate", KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"cuGraphInstantiate_v2", KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"cuGraphInstantiateWithFlags", KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"cuGraphInstantiateWithParams[_ptsz]", KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"cuGraphUpload[_ptsz]", KIND_GRAPH_UPLOAD, "func:rdi stream:rsi"},
    {"cuGraphExecUpdate", KIND_GRAPH_UPDATE, "func:rdi graph:rsi out:rcx"},
    {"cuGraphExecUpdate_v2", KIND_GRAPH_UPDATE, "func:rdi graph:rsi out:rdx"},
    {"cuGraphExecKernelNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecKernelNodeSetParams_v2", KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecMemcpyNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecMemsetNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecHostNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecChildGraphNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecEventRecordNodeSetEvent", KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecEventWaitNodeSetEvent", KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecExternalSemaphoresSignalNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecExternalSemaphoresWaitNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecBatchMemOpNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphNodeSetEnabled", KIND_GRAPH_SET, "func:rdi"},
    {"cuGraphExecDestroy", KIND_EXEC_GONE, "func:rdi"},

    // Streams join a capture by waiting for an event that was recorded in it.
    {"cuEventRecord[_ptsz]", KIND_EVENT_RECORD, "handle:rdi stream:rsi"},
    {"cuEventRecordWithFlags[_ptsz]", KIND_EVENT_RECORD, "handle:rdi stream:rsi"},
    {"cuStreamWaitEvent[_ptsz]", KIND_EVENT_WAIT, "stream:rdi handle:rsi"},

    // The same, runtime
    {"cudaStreamBeginCapture[_ptsz]", KIND_CAPTURE_BEGIN, "stream:rdi"},
    {"cudaStreamBeginCaptureToGraph[_ptsz]", KIND_CAPTURE_BEGIN, "stream:rdi graph:rsi"},
    {"cudaStreamEndCapture[_ptsz]", KIND_CAPTURE_END, "stream:rdi out:rsi"},
    {"cudaGraphCreate", KIND_GRAPH_NEW, "out:rdi"},
    {"cudaGraphClone", KIND_GRAPH_NEW, "out:rdi graph:rsi"},
    {"cudaGraphAddKernelNode", KIND_GRAPH_NODE, "kernel-node graph:rsi"},
    {"cudaGraphAddMemcpyNode", KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"cudaGraphAddMemcpyNode1D", KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"cudaGraphAddMemcpyNodeFromSymbol", KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"cudaGraphAddMemcpyNodeToSymbol", KIND_GRAPH_NODE, "copy-node graph:rsi"},
    {"cudaGraphAddMemsetNode", KIND_GRAPH_NODE, "set-node graph:rsi"},
    {"cudaGraphAddHostNode", KIND_GRAPH_NODE, "host-node graph:rsi"},
    {"cudaGraphAddChildGraphNode", KIND_GRAPH_NODE, "graph:rsi child:r8"},
    {"cudaGraphAddEmptyNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cudaGraphAddEventRecordNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cudaGraphAddEventWaitNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cudaGraphAddExternalSemaphoresSignalNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cudaGraphAddExternalSemaphoresWaitNode", KIND_GRAPH_NODE, "other-node graph:rsi"},
    {"cudaGraphAddNode", KIND_GRAPH_NODE, "graph:rsi node_type:r8[0.l] child:r8[16]", cudart12},
    {"cudaGraphAddNode", KIND_GRAPH_NODE, "graph:rsi node_type:r9[0.l] child:r9[16]", cudart13},
    {"cudaGraphAddNode_v2", KIND_GRAPH_NODE, "graph:rsi node_type:r9[0.l] child:r9[16]", cudart12},
    {"cudaGraphDestroy", KIND_GRAPH_GONE, "graph:rdi"},
    {"cudaGraphInstantiate", KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"cudaGraphInstantiateWithFlags", KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"cudaGraphInstantiateWithParams[_ptsz]", KIND_GRAPH_INSTANTIATE, "out:rdi graph:rsi"},
    {"cudaGraphUpload[_ptsz]", KIND_GRAPH_UPLOAD, "func:rdi stream:rsi"},
    {"cudaGraphExecUpdate", KIND_GRAPH_UPDATE, "func:rdi graph:rsi out:rcx", cudart11},
    {"cudaGraphExecUpdate", KIND_GRAPH_UPDATE, "func:rdi graph:rsi out:rdx", cudart12 | cudart13},
    {"cudaGraphExecKernelNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecMemcpyNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecMemcpyNodeSetParams1D", KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecMemcpyNodeSetParamsFromSymbol", KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecMemcpyNodeSetParamsToSymbol", KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecMemsetNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecHostNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecChildGraphNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecEventRecordNodeSetEvent", KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecEventWaitNodeSetEvent", KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecExternalSemaphoresSignalNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecExternalSemaphoresWaitNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecNodeSetParams", KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphNodeSetEnabled", KIND_GRAPH_SET, "func:rdi"},
    {"cudaGraphExecDestroy", KIND_EXEC_GONE, "func:rdi"},
};

} // namespace

std::span<const TableEntry> graph_entries()
{
    return table;
}

} // namespace gpusnoop
