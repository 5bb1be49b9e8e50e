// SPDX-License-Identifier: Apache-2.0
#include "attach/probe_table.hpp"

namespace gpusnoop {
namespace {

constexpr TableEntry graph_table[] = {
    // Building graphs
    {"cuGraphCreate", KIND_GRAPH_NEW, "(out)"},
    {"cuGraphClone", KIND_GRAPH_NEW, "(out, graph)"},
    {"cuGraphAddKernelNode", KIND_GRAPH_NODE, "kernel-node (_, graph)"},
    {"cuGraphAddKernelNode_v2", KIND_GRAPH_NODE, "kernel-node (_, graph)"},
    {"cuGraphAddMemcpyNode", KIND_GRAPH_NODE, "copy-node (_, graph)"},
    {"cuGraphAddMemsetNode", KIND_GRAPH_NODE, "set-node (_, graph)"},
    {"cuGraphAddHostNode", KIND_GRAPH_NODE, "host-node (_, graph)"},
    {"cuGraphAddChildGraphNode", KIND_GRAPH_NODE, "(_, graph, _, _, child)"},
    {"cuGraphAddEmptyNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"cuGraphAddEventRecordNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"cuGraphAddEventWaitNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"cuGraphAddExternalSemaphoresSignalNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"cuGraphAddExternalSemaphoresWaitNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"cuGraphAddBatchMemOpNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    // CUgraphNodeParams begins with the type of the node, and the parameters of that type follow.
    {"cuGraphAddNode", KIND_GRAPH_NODE, "(_, graph, _, _, *{0 int node_type, 16 child})"},
    {"cuGraphAddNode_v2", KIND_GRAPH_NODE, "(_, graph, _, _, _, *{0 int node_type, 16 child})"},
    {"cuGraphDestroy", KIND_GRAPH_DESTROY, "(graph)"},

    // Executing graphs
    {"cuGraphInstantiate", KIND_GRAPH_INSTANTIATE, "(out, graph)"},
    {"cuGraphInstantiate_v2", KIND_GRAPH_INSTANTIATE, "(out, graph)"},
    {"cuGraphInstantiateWithFlags", KIND_GRAPH_INSTANTIATE, "(out, graph)"},
    {"cuGraphInstantiateWithParams[_ptsz]", KIND_GRAPH_INSTANTIATE, "(out, graph)"},
    {"cuGraphUpload[_ptsz]", KIND_GRAPH_UPLOAD, "(func, stream)"},
    {"cuGraphExecUpdate", KIND_GRAPH_UPDATE, "(func, graph, _, out)"},
    {"cuGraphExecUpdate_v2", KIND_GRAPH_UPDATE, "(func, graph, out)"},
    {"cuGraphExecKernelNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cuGraphExecKernelNodeSetParams_v2", KIND_GRAPH_SET, "(func)"},
    {"cuGraphExecMemcpyNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cuGraphExecMemsetNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cuGraphExecHostNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cuGraphExecChildGraphNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cuGraphExecEventRecordNodeSetEvent", KIND_GRAPH_SET, "(func)"},
    {"cuGraphExecEventWaitNodeSetEvent", KIND_GRAPH_SET, "(func)"},
    {"cuGraphExecExternalSemaphoresSignalNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cuGraphExecExternalSemaphoresWaitNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cuGraphExecBatchMemOpNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cuGraphExecNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cuGraphNodeSetEnabled", KIND_GRAPH_SET, "(func)"},
    {"cuGraphExecDestroy", KIND_EXEC_DESTROY, "(func)"},

    // Streams join a capture by waiting for an event that was recorded in it.
    {"cuEventRecord[_ptsz]", KIND_EVENT_RECORD, "(handle, stream)"},
    {"cuEventRecordWithFlags[_ptsz]", KIND_EVENT_RECORD, "(handle, stream)"},
    {"cuStreamWaitEvent[_ptsz]", KIND_EVENT_WAIT, "(stream, handle)"},
    {"cuEventDestroy", KIND_EVENT_DESTROY, "(handle)"},
    {"cuEventDestroy_v2", KIND_EVENT_DESTROY, "(handle)"},

    // Graphs, runtime
    {"cudaStreamBeginCapture[_ptsz]", KIND_CAPTURE_BEGIN, "(stream)"},
    {"cudaStreamBeginCaptureToGraph[_ptsz]", KIND_CAPTURE_BEGIN, "(stream, graph)"},
    {"cudaStreamEndCapture[_ptsz]", KIND_CAPTURE_END, "(stream, out)"},
    {"cudaGraphCreate", KIND_GRAPH_NEW, "(out)"},
    {"cudaGraphClone", KIND_GRAPH_NEW, "(out, graph)"},
    {"cudaGraphAddKernelNode", KIND_GRAPH_NODE, "kernel-node (_, graph)"},
    {"cudaGraphAddMemcpyNode", KIND_GRAPH_NODE, "copy-node (_, graph)"},
    {"cudaGraphAddMemcpyNode1D", KIND_GRAPH_NODE, "copy-node (_, graph)"},
    {"cudaGraphAddMemcpyNodeFromSymbol", KIND_GRAPH_NODE, "copy-node (_, graph)"},
    {"cudaGraphAddMemcpyNodeToSymbol", KIND_GRAPH_NODE, "copy-node (_, graph)"},
    {"cudaGraphAddMemsetNode", KIND_GRAPH_NODE, "set-node (_, graph)"},
    {"cudaGraphAddHostNode", KIND_GRAPH_NODE, "host-node (_, graph)"},
    {"cudaGraphAddChildGraphNode", KIND_GRAPH_NODE, "(_, graph, _, _, child)"},
    {"cudaGraphAddEmptyNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"cudaGraphAddEventRecordNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"cudaGraphAddEventWaitNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"cudaGraphAddExternalSemaphoresSignalNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"cudaGraphAddExternalSemaphoresWaitNode", KIND_GRAPH_NODE, "other-node (_, graph)"},
    {"cudaGraphAddNode", KIND_GRAPH_NODE, "(_, graph, _, _, *{0 int node_type, 16 child})", cudart12},
    {"cudaGraphAddNode", KIND_GRAPH_NODE, "(_, graph, _, _, _, *{0 int node_type, 16 child})", cudart13},
    {"cudaGraphAddNode_v2", KIND_GRAPH_NODE, "(_, graph, _, _, _, *{0 int node_type, 16 child})", cudart12},
    {"cudaGraphDestroy", KIND_GRAPH_DESTROY, "(graph)"},
    {"cudaGraphInstantiate", KIND_GRAPH_INSTANTIATE, "(out, graph)"},
    {"cudaGraphInstantiateWithFlags", KIND_GRAPH_INSTANTIATE, "(out, graph)"},
    {"cudaGraphInstantiateWithParams[_ptsz]", KIND_GRAPH_INSTANTIATE, "(out, graph)"},
    {"cudaGraphUpload[_ptsz]", KIND_GRAPH_UPLOAD, "(func, stream)"},
    {"cudaGraphExecUpdate", KIND_GRAPH_UPDATE, "(func, graph, _, out)", cudart11},
    {"cudaGraphExecUpdate", KIND_GRAPH_UPDATE, "(func, graph, out)", cudart12 | cudart13},
    {"cudaGraphExecKernelNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cudaGraphExecMemcpyNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cudaGraphExecMemcpyNodeSetParams1D", KIND_GRAPH_SET, "(func)"},
    {"cudaGraphExecMemcpyNodeSetParamsFromSymbol", KIND_GRAPH_SET, "(func)"},
    {"cudaGraphExecMemcpyNodeSetParamsToSymbol", KIND_GRAPH_SET, "(func)"},
    {"cudaGraphExecMemsetNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cudaGraphExecHostNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cudaGraphExecChildGraphNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cudaGraphExecEventRecordNodeSetEvent", KIND_GRAPH_SET, "(func)"},
    {"cudaGraphExecEventWaitNodeSetEvent", KIND_GRAPH_SET, "(func)"},
    {"cudaGraphExecExternalSemaphoresSignalNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cudaGraphExecExternalSemaphoresWaitNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cudaGraphExecNodeSetParams", KIND_GRAPH_SET, "(func)"},
    {"cudaGraphNodeSetEnabled", KIND_GRAPH_SET, "(func)"},
    {"cudaGraphExecDestroy", KIND_EXEC_DESTROY, "(func)"},
};

} // namespace

std::span<const TableEntry> graph_entries()
{
    return graph_table;
}

} // namespace gpusnoop
