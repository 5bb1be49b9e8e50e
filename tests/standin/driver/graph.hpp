// SPDX-License-Identifier: Apache-2.0
// Graphs: lists of nodes, which are added by a capture or one by one. Dependencies are not stored; only the order of
// the nodes is.
#pragma once

#include "../abi_graph.hpp"
#include "module.hpp"

#include <deque>
#include <mutex>
#include <vector>

namespace standin {

using Handle = uintptr_t; // handle of a graph or executable graph: an arbitrary number, reused as soon as it is free

struct Graph;
struct Contents;

struct Node {
    NodeType type = NodeType::empty;
    void* function = nullptr;
    Dim3 grid{}, block{};
    unsigned shared = 0;
    HostFunction host = nullptr;
    void* argument = nullptr;
    std::shared_ptr<const Contents> child{}; // a copy of the child graph, made when the node was added
    std::vector<Handle> bodies{};            // body graphs of a conditional node
    const Node* origin = nullptr;            // in an executable graph: the node that it was instantiated from
};
using Nodes = std::deque<Node>; // a deque: a node's address is its handle

struct Contents {
    Nodes nodes;
    NodeCounts counts;
};

// A graph, or an executable graph.
struct Graph {
    Nodes nodes;
    std::shared_ptr<GraphRecord> record;
};

extern std::mutex graph_lock; // protects all graphs, executable graphs and captures

inline Node kernel_node(void* function, const Dim3& grid, const Dim3& block, unsigned shared)
{
    return {.type = NodeType::kernel, .function = function, .grid = grid, .block = block, .shared = shared};
}
inline Node host_node(HostFunction function, void* argument)
{
    return {.type = NodeType::host, .host = function, .argument = argument};
}

// The callers of these functions must hold graph_lock. An unpublished graph has a handle that the driver has not yet
// returned to the program.
std::shared_ptr<Graph> make_graph(bool is_exec = false);
Handle publish(Graph&);
void drop(Graph&); // unpublished graphs only
std::shared_ptr<Graph> find_graph(Handle);
std::shared_ptr<Graph> find_exec(Handle);
int destroy_graph(Handle);
int destroy_exec(Handle);

Nodes copy_of(const Nodes&);
NodeCounts counts_of(const Nodes&);
std::shared_ptr<Contents> contents_of(const Graph&); // a copy
void append(Graph&, Node, Node** out = nullptr);

// Acquires graph_lock. Does not count the call, because the caller has done so.
int add_node(Node** out, Handle graph, Node);

} // namespace standin
