// SPDX-License-Identifier: Apache-2.0
// Structures of graphs, and the driver's records of the graphs it created.
#pragma once

#include "abi.hpp"

namespace standin {

enum class NodeType : unsigned { // CUgraphNodeType
    kernel,
    memcpy,
    memset,
    host,
    graph,
    empty,
    event_wait,
    event_record,
    semaphore_signal,
    semaphore_wait,
    alloc,
    free,
    memop,
    conditional,
    other // not a CUDA value; all other types of nodes
};

struct MemsetNode { // CUDA_MEMSET_NODE_PARAMS
    void* destination;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
};
static_assert(sizeof(MemsetNode) == 40 && offsetof(MemsetNode, width) == 24);

struct ConditionalNode { // CUDA_CONDITIONAL_NODE_PARAMS
    uint64_t handle;
    unsigned type, size;
    uintptr_t* bodies; // output: `size` body graphs, which belong to the node
    void* context;
};
static_assert(sizeof(ConditionalNode) == 32 && offsetof(ConditionalNode, bodies) == 16);

struct GenericNode { // CUgraphNodeParams
    NodeType type;
    unsigned reserved[3];
    alignas(8) unsigned char of_type[240];

    template<class T>
    T& as()
    {
        return *reinterpret_cast<T*>(of_type);
    }
    template<class T>
    const T& as() const
    {
        return *reinterpret_cast<const T*>(of_type);
    }
};
static_assert(sizeof(GenericNode) == 256 && offsetof(GenericNode, of_type) == 16);

// Numbers of nodes of a graph, including the nodes of its child graphs. Child-graph nodes count in `children` only.
struct NodeCounts {
    uint64_t kernels = 0, copies = 0, memsets = 0, host = 0, others = 0, children = 0;

    uint64_t nodes() const { return kernels + copies + memsets + host + others; }
    NodeCounts& operator+=(const NodeCounts& more)
    {
        kernels += more.kernels;
        copies += more.copies;
        memsets += more.memsets;
        host += more.host;
        others += more.others;
        children += more.children;
        return *this;
    }
};

// A graph or executable graph that the driver returned to this process. Handles are reused, so an object is identified
// by its handle and generation. The first graph with a handle has generation 1, and so does the first executable graph.
struct GraphRecord {
    bool is_exec = false, captured = false, destroyed = false;
    uintptr_t handle = 0;
    uint64_t generation = 0;
    uintptr_t graph = 0; // the graph that this object was instantiated or cloned from
    uint64_t graph_generation = 0;
    NodeCounts counts{};
    uint64_t launches = 0, failed_launches = 0, uploads = 0, set_params = 0, updates = 0, failed_updates = 0;
    unsigned update_result = 0; // result of the last update
};

} // namespace standin
