// SPDX-License-Identifier: Apache-2.0
// Graphs: a list of nodes, filled by capture or node by node. The order of nodes stands for their dependencies.
#pragma once

#include "../abi_graph.hpp"
#include "module.hpp"

#include <deque>
#include <mutex>
#include <vector>

namespace standin {

using Handle = uintptr_t; // of a graph or an executable one: made up, and used again as soon as it is free

struct Graph;
struct Contents;

struct Node {
    NodeType type = NodeType::empty;
    void* function = nullptr;
    Dim3 grid{}, block{};
    unsigned shared = 0;
    HostFunction host = nullptr;
    void* argument = nullptr;
    std::shared_ptr<const Contents> child{}; // as it was when it was added
    std::vector<Handle> bodies{};            // of a conditional node
    Graph* graph = nullptr;                  // the graph it is in; null in an executable one
    const Node* origin = nullptr;            // in an executable graph: the node that it was made of
    bool enabled = true;
    bool gone = false; // destroyed: the others keep their places
};
using Nodes = std::deque<Node>; // a deque: a node's address is its handle

struct Contents {
    Nodes nodes;
    NodeCounts counts;
};

struct Graph {
    Nodes nodes;
    std::shared_ptr<GraphRecord> record;
};

struct GraphExec {
    Nodes nodes;
    std::shared_ptr<GraphRecord> record;
};

extern std::mutex graph_lock; // over everything here and over captures

inline Node kernel_node(void* function, const Dim3& grid, const Dim3& block, unsigned shared)
{
    return {.type = NodeType::kernel, .function = function, .grid = grid, .block = block, .shared = shared};
}
inline Node host_node(HostFunction function, void* argument)
{
    return {.type = NodeType::host, .host = function, .argument = argument};
}

// Under graph_lock. A graph that is not published yet has its handle, but nobody got it from the driver.
std::shared_ptr<Graph> make_graph();
void publish(Graph&);
void drop(Graph&); // an unpublished one
std::shared_ptr<Graph> find_graph(Handle);
std::shared_ptr<GraphExec> find_exec(Handle);
std::shared_ptr<GraphExec> make_exec();
void publish(GraphExec&);
bool destroy_graph(Handle);
bool destroy_exec(Handle);

Nodes copy_of(const Nodes&); // without those that are gone
NodeCounts counts_of(const Nodes&);
void append(Graph&, Node, Node** out = nullptr);

// Takes the lock. Part of a call that is counted already.
int add_node(Node** out, Handle graph, Node);

} // namespace standin
