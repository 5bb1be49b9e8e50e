// SPDX-License-Identifier: Apache-2.0
// The graphs and executable graphs that scripts have names for.
#pragma once

#include "graph_truth.hpp"
#include "session.hpp"
#include "symbols.hpp"

namespace workload {

// Names are known to all threads, but for those with a dot first. They stay when what they name is destroyed: a script
// may use it after that. `null` is none.
void* graph(const Step&, const std::string& name);
void* exec(const Step&, const std::string& name);
void remember_graph(const std::string& name, void*);
void remember_exec(const std::string& name, void*, void* graph);
void* source_of(void* exec); // the graph that it was made of

// fn=, or the function of this name (GraphCreate) of the layer that this form uses.
std::string function_of(const Step&, const std::string& name, const std::string& driver_suffix = "");

// The calls of one step, with the truth; what is told of them is `call` as it is when they are over.
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

// Of calls that all ended alike; -1: there were none, as the workload is to stop.
inline int result_of(const Results& results)
{
    for (const auto& [result, tally] : results)
        if (tally.count)
            return result;
    return -1;
}

void create_graph(const std::string& function, void** graph); // or fails
// Of a step's option instantiate= and a graph that it made; becomes the executable graph that was made last, or fails.
void instantiate_last(const Step&, void* graph);

// graph_nodes.cpp
void add_nodes(const Step&);   // graph add GRAPH KIND [COUNT]
void set_params(const Step&);  // graph setparams EXEC KIND [COUNT]
void enable_node(const Step&); // graph enable EXEC 0|1
void destroy_node(const Step&);
void add_kernel_nodes(const Step&, void* graph, void* kernel, uint64_t count); // of `build`

} // namespace workload
