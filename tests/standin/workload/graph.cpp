// SPDX-License-Identifier: Apache-2.0
// Graphs: create, clone, instantiate, upload, launch, update, destroy.
#include "graph.hpp"

#include "kernels.hpp"
#include "steps.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace workload {
namespace {

std::mutex lock; // protects these maps
std::map<std::string, void*> graphs, execs;
std::map<void*, void*> sources; // executable graph -> the graph it was instantiated from

void* look_up(const Step& step, const std::map<std::string, void*>& names, const std::string& name)
{
    if (name == "null")
        return nullptr;
    std::lock_guard hold(lock);
    auto found = names.find(per_thread_name(name));
    if (found == names.end())
        wrong(step, "no graph named " + name);
    return found->second;
}

void require_success(int result, const std::string& function)
{
    if (result && !stopping())
        fail(function + " returned " + std::to_string(result));
}

// Makes one call that creates a graph; returns the graph. Unless the call succeeded, `result` is not 0.
template<class F>
void* make(const Step& step, GraphCall call, int& result, F f)
{
    void* made = nullptr;
    auto results = graph_calls(step, call, 1, [&](void* target) {
        int code = f(target, &made);
        call.graph = graph_key(code ? nullptr : made);
        return code;
    });
    result = result_of(results);
    return made;
}

void create(const Step& step)
{
    int result = 0;
    void* made = make(step, {.function = function_of(step, "GraphCreate"), .kind = "create"}, result,
                      [](void* f, void** out) { return call_symbol(f, out, 0u); });
    if (!result)
        remember_graph(step.word(1), made);
}

void clone(const Step& step)
{
    int result = 0;
    void* from = graph(step, step.word(1));
    void* made = make(step, {.function = function_of(step, "GraphClone"), .kind = "clone", .source = graph_key(from)},
                      result, [&](void* f, void** out) { return call_symbol(f, out, from); });
    if (!result)
        remember_graph(step.word(2), made);
}

std::string instantiating_function()
{
    return runtime_major ? "cudaGraphInstantiate" : "cuGraphInstantiateWithFlags";
}

// Returns the call's result. If the call fails, the handle is meaningless.
int instantiate(const Step& step, const std::string& function, void* graph, void*& made)
{
    GraphCall call{.function = function, .kind = "instantiate", .graph = graph_key(graph)};
    standin::InstantiateParams params = {};
    bool with_params = without_suffix(function).ends_with("WithParams");
    auto results = graph_calls(step, call, 1, [&](void* f) {
        // The other functions differ only in arguments that are zero here, so the same call works for all of them.
        int result = with_params ? call_symbol(f, &made, graph, &params)
                                 : call_symbol(f, &made, graph, 0ull, nullptr, static_cast<size_t>(0));
        call.exec = exec_key(result ? nullptr : made);
        return result;
    });
    int result = result_of(results);
    if (!result)
        add_instantiation(call.exec, results[0].duration_ns);
    return result;
}

void instantiate_named(const Step& step)
{
    void *from = graph(step, step.word(1)), *made = nullptr;
    if (instantiate(step, step.option("fn", instantiating_function()), from, made))
        return;
    remember_exec(step.word(2), made, from);
    set_last_graph(made);
}

void upload(const Step& step)
{
    void* x = exec(step, step.word(1));
    void* s = stream(step);
    GraphCall call{.function = function_of(step, "GraphUpload"), .kind = "upload", .exec = exec_key(x)};
    call.stream = reinterpret_cast<uintptr_t>(s);
    graph_calls(step, call, to_number(step, step.word(2, "1")), [&](void* f) { return call_symbol(f, x, s); });
}

void launch(const Step& step, void* x, uint64_t count)
{
    auto function = function_of(step, "GraphLaunch");
    if (!without_suffix(function).ends_with("GraphLaunch"))
        wrong(step, function + " does not launch graphs");
    void* s = stream(step);
    GraphCall graph_call{.function = function, .kind = "launch", .exec = exec_key(x)};
    graph_call.kernels = driver_kernels(x);
    graph_call.recorded = driver_is_capturing(s);
    graph_call.stream = reinterpret_cast<uintptr_t>(s);
    auto results = graph_calls(step, graph_call, count, [&](void* f) { return call_symbol(f, x, s); });

    Call call = call_of(function, "graph");
    call.handle = reinterpret_cast<uintptr_t>(x);
    call.kernels = graph_call.kernels;
    call.stream = *graph_call.stream;
    add_results(call, results, Pace(step), is_runtime(function) ? "cu" + without_suffix(function).substr(4) : "");
}

void launch_named(const Step& step)
{
    launch(step, exec(step, step.word(1)), to_number(step, step.word(2, "1")));
}

// Depending on its version, the function returns the result in a structure, or in an argument after the node.
int update(void* f, bool one_structure, void* x, void* from, unsigned& why)
{
    standin::UpdateResult info = {};
    void* node = nullptr;
    int result = one_structure ? call_symbol(f, x, from, &info) : call_symbol(f, x, from, &node, &info.result);
    why = info.result;
    return result;
}

void update_named(const Step& step)
{
    void *x = exec(step, step.word(1)), *from = graph(step, step.word(2));
    auto function = function_of(step, "GraphExecUpdate", "_v2");
    bool one_structure = function != "cuGraphExecUpdate";
    auto result = static_cast<unsigned>(step.number("update_result", 0));
    GraphCall call{.function = function, .kind = "update", .graph = graph_key(from), .exec = exec_key(x)};
    unsigned why = 0;
    graph_calls(step, call, to_number(step, step.word(3, "1")), [&](void* f) {
        if (result)
            call_symbol(symbol("standin_next_update_result"), result);
        int code = update(f, one_structure, x, from, why);
        if (!step.has("runtime_result"))
            call.update_result = why;
        return code;
    });
}

void destroy(const Step& step)
{
    void* from = graph(step, step.word(1));
    GraphCall call{.function = function_of(step, "GraphDestroy"), .kind = "destroy", .graph = graph_key(from)};
    graph_calls(step, call, 1, [&](void* f) { return call_symbol(f, from); });
}

void destroy_exec(const Step& step)
{
    void* x = exec(step, step.word(1));
    GraphCall call{.function = function_of(step, "GraphExecDestroy"), .kind = "execdestroy", .exec = exec_key(x)};
    graph_calls(step, call, 1, [&](void* f) { return call_symbol(f, x); });
}

const StepRow words[] = {
    {"create", create},       {"clone", clone},
    {"add", add_nodes},       {"instantiate", instantiate_named},
    {"upload", upload},       {"launch", launch_named},
    {"update", update_named}, {"setparams", set_params},
    {"destroy", destroy},     {"execdestroy", destroy_exec},
};

} // namespace

void* graph(const Step& step, const std::string& name)
{
    return look_up(step, graphs, name);
}

void* exec(const Step& step, const std::string& name)
{
    return look_up(step, execs, name);
}

void remember_graph(const std::string& name, void* graph)
{
    std::lock_guard hold(lock);
    graphs[per_thread_name(name)] = graph;
}

void remember_exec(const std::string& name, void* exec, void* graph)
{
    std::lock_guard hold(lock);
    execs[per_thread_name(name)] = exec;
    sources[exec] = graph;
}

void* source_of(void* exec)
{
    std::lock_guard hold(lock);
    return sources[exec];
}

std::string function_of(const Step& step, const std::string& name, const std::string& driver_suffix)
{
    return step.option("fn", runtime_major ? "cuda" + name : "cu" + name + driver_suffix);
}

void create_graph(const std::string& function, void** graph)
{
    int result = 0;
    *graph = make({}, {.function = function, .kind = "create"}, result,
                  [](void* f, void** out) { return call_symbol(f, out, 0u); });
    require_success(result, function);
}

void instantiate_last(void* graph)
{
    void* made = nullptr;
    auto function = instantiating_function();
    require_success(instantiate({}, function, graph, made), function);
    set_last_graph(made);
}

// build KERNEL NODES [grid=]
void build_graph(const Step& step)
{
    void* made = nullptr;
    create_graph("cuGraphCreate", &made);
    add_kernel_nodes(step, made, handle(device_name(step.word(0)), HandleKind::function), step.number(1));
    instantiate_last(made);
}

// graph COUNT [fn=...] [stream=N]: launches the last graph. graph WORD ...: runs the function for WORD in the table
// above.
void graph_step(const Step& step)
{
    auto word = step.word(0);
    if (auto row = std::ranges::find(words, word, &StepRow::name); row != std::end(words))
        return row->run(step);
    void* last = last_graph();
    uint64_t count = step.number(0);
    if (!last)
        wrong(step, "no graph yet: use capture or build");
    launch(step, last, count);
}

} // namespace workload
