// SPDX-License-Identifier: Apache-2.0
// Graphs in the truth file: one line for all calls with equal fields, and at the end one line per graph and executable
// graph that ever existed.
#pragma once

#include "calls.hpp"

namespace workload {

// Identifies a graph or executable graph: its handle (null: none), and a generation, because handles are reused.
struct GraphKey {
    void* handle = nullptr;
    uint64_t generation = 0;

    auto operator<=>(const GraphKey&) const = default;
};
GraphKey graph_key(void* handle);
GraphKey exec_key(void* handle);

struct GraphCall {
    std::string function;
    std::string kind; // begin, end, create, clone, add, conditional, instantiate, upload, launch, update, setparams...
    std::string node{}; // the kind of node that is added or changed
    GraphKey graph{}, exec{};
    GraphKey source{}; // the graph that is cloned, or added as a child
    std::optional<uint64_t> stream{};
    std::optional<unsigned> update_result{};
    bool recorded = false; // the launch was captured as a node
    uint64_t kernels = 0;  // kernels that one launch starts
    // These are set by add().
    bool nested = false;
    int device = -1, result = 0, tid = 0;
    std::string comm{};

    auto operator<=>(const GraphCall&) const = default;
};

// Adds a call, and the driver call that the runtime made for it.
void add_graph_results(const GraphCall&, const Results&, const Pace&);
std::string nested_function(const std::string& runtime_function);

// Records the duration of a successful capture or instantiation.
void add_capture(const GraphKey& graph, uint64_t ns);
void add_instantiation(const GraphKey& exec, uint64_t ns);

std::string graph_lines();
void forget_graphs();

} // namespace workload
