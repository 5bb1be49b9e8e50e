// SPDX-License-Identifier: Apache-2.0
// Graphs: a list of nodes, filled by capture or node by node. The order of nodes stands for their dependencies.
#pragma once

#include "module.hpp"

#include <deque>

namespace standin {

enum class NodeType { kernel, memcpy, memset, host, graph, empty, other };

struct Node {
    NodeType type = NodeType::empty;
    void* function = nullptr;
    Dim3 grid{}, block{};
    unsigned shared = 0;
    HostFunction host = nullptr;
    void* argument = nullptr;
};

struct Graph {
    std::deque<Node> nodes; // a deque: a node's address is its handle
};

struct GraphExec {
    std::deque<Node> nodes;
};

// The node becomes part of the graph that `stream` is recording.
int record(Graph*, const Node&);
int add_node(Node** out, Graph*, const Node&);

} // namespace standin
