// SPDX-License-Identifier: Apache-2.0
// Named graphs and executable graphs of scripts.
#pragma once

#include "graph_truth.hpp"
#include "session.hpp"
#include "symbols.hpp"

namespace workload {

// Names are shared by all threads; names that begin with a dot are per thread. A name stays valid after its graph is
// destroyed, because scripts may pass handles of destroyed graphs. The name `null` is a null handle.
void* graph(const Step&, const std::string& name);
void* exec(const Step&, const std::string& name);
void remember_graph(const std::string& name, void*);
void remember_exec(const std::string& name, void*, void* graph);
void* source_of(void* exec); // the graph it was instantiated from

// Returns the option fn=, or else the runtime's or driver's function `name` (such as GraphCreate), depending on this
// form of the workload.
std::string function_of(const Step&, const std::string& name, const std::string& driver_suffix = "");

// Makes the calls of a step, and records them in the truth. `call` is recorded after the calls, so `f` may change its
// fields.
template<class F>
Results graph_calls(const Step& step, GraphCall& call, uint64_t count, F f)
{
    Pace pace(step);
    if (!is_runtime(call.function))
        ready_driver();
    void* target = symbol(call.function);
    auto results = make_calls<Timed::yes>(pace, count, [&] { return f(target); });
    add_graph_results(call, results, pace);
    return results;
}

// Returns the common result of all calls, or -1 if no call was made because the workload is stopping.
inline int result_of(const Results& results)
{
    for (const auto& [result, tally] : results)
        if (tally.count)
            return result;
    return -1;
}

void create_graph(const std::string& function, void** graph); // exits on failure
void instantiate_last(void* graph);                           // makes it the last executable graph; exits on failure

// graph_nodes.cpp
void add_nodes(const Step&);                                                   // graph add GRAPH KIND [COUNT]
void set_params(const Step&);                                                  // graph setparams EXEC KIND [COUNT]
void add_kernel_nodes(const Step&, void* graph, void* kernel, uint64_t count); // for the step `build`

} // namespace workload
