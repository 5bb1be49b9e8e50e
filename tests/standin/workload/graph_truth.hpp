// SPDX-License-Identifier: Apache-2.0
// The truth about graphs: a line for each call that has to do with one, as calls have, and at the end one for each
// graph and executable graph that there ever was.
#pragma once

#include "calls.hpp"

namespace workload {

// A handle, and which of those that had it: null is none.
struct Named {
    void* handle = nullptr;
    uint64_t generation = 0;

    auto operator<=>(const Named&) const = default;
};
Named graph_now(void* handle);
Named exec_now(void* handle);

struct GraphCall {
    std::string function;
    std::string kind; // begin, end, create, clone, add, conditional, instantiate, upload, launch, update, setparams...
    std::string node{}; // the kind of node that is added or changed
    Named graph{}, exec{};
    Named of{}; // cloned, added as a child
    std::optional<uint64_t> stream{};
    std::optional<unsigned> update_result{};
    std::optional<unsigned> mode{}; // of a capture that begins
    bool recorded = false;          // a launch that became a node
    uint64_t kernels = 0;           // that one launch starts
    // Filled in later.
    bool nested = false;
    int device = -1, result = 0, tid = 0;
    std::string comm{};

    auto operator<=>(const GraphCall&) const = default;
};

// Adds the call, and that of the driver which the runtime made for it.
void add_graph_results(const GraphCall&, const Results&, const Pace&);
std::string nested_function(const std::string& runtime_function);

// How long something took that ended in a graph or an executable one.
void add_capture(const Named& graph, uint64_t ns);
void add_instantiation(const Named& exec, uint64_t ns);

// From now on calls are told without handles, and of what was destroyed there are no lines: for a long run.
void be_brief();

std::string graph_lines();
void forget_graphs();

} // namespace workload
