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

struct Made {
    int result = -1;
    void* handle = nullptr;
};

// If the call fails, the handle is meaningless.
Made instantiate(const Step& step, const std::string& function, void* graph)
{
    Made made;
    GraphCall call{.function = function, .kind = "instantiate", .graph = graph_key(graph)};
    Pace pace(step);
    if (!is_runtime(function))
        ready_driver();
    standin::InstantiateParams params = {};
    bool with_params = without_suffix(function).ends_with("WithParams");
    uint64_t flags = step.number("flags", 0);
    params.flags = flags;
    void* f = symbol(function);
    auto results = make_calls<Timed::yes>(pace, 1, [&] {
        // The other functions differ only in arguments that are zero here, so the same call works for all of them.
        return with_params ? call_symbol(f, &made.handle, graph, &params)
                           : call_symbol(f, &made.handle, graph, flags, nullptr, static_cast<size_t>(0));
    });
    made.result = result_of(results);
    if (!made.result) {
        call.exec = exec_key(made.handle);
        add_instantiation(call.exec, results[0].duration_ns);
    }
    add_graph_results(call, results, pace);
    return made;
}

void create(const Step& step)
{
    void* made = nullptr;
    GraphCall call{.function = function_of(step, "GraphCreate"), .kind = "create"};
    auto results = graph_calls(step, call, 1, [&](void* f) {
        int result = call_symbol(f, &made, 0u);
        call.graph = graph_key(result ? nullptr : made);
        return result;
    });
    if (!result_of(results))
        remember_graph(step.word(1), made);
}

void clone(const Step& step)
{
    void *from = graph(step, step.word(1)), *made = nullptr;
    GraphCall call{.function = function_of(step, "GraphClone"), .kind = "clone", .source = graph_key(from)};
    auto results = graph_calls(step, call, 1, [&](void* f) {
        int result = call_symbol(f, &made, from);
        call.graph = graph_key(result ? nullptr : made);
        return result;
    });
    if (!result_of(results))
        remember_graph(step.word(2), made);
}

std::string instantiating_function(const Step& step, const std::string& key)
{
    return step.option(key, runtime_major ? "cudaGraphInstantiate" : "cuGraphInstantiateWithFlags");
}

void instantiate_named(const Step& step)
{
    void* from = graph(step, step.word(1));
    auto made = instantiate(step, instantiating_function(step, "fn"), from);
    if (made.result)
        return;
    remember_exec(step.word(2), made.handle, from);
    set_last_graph(made.handle);
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

void conditional_handle(const Step& step)
{
    void* to = graph(step, step.word(1));
    uint64_t made = 0;
    GraphCall call{
        .function = function_of(step, "GraphConditionalHandleCreate"), .kind = "conditional", .graph = graph_key(to)};
    bool runtime = is_runtime(call.function); // the runtime's function takes no context
    graph_calls(step, call, 1, [&](void* f) {
        return runtime ? call_symbol(f, &made, to, 0u, 0u) : call_symbol(f, &made, to, nullptr, 0u, 0u);
    });
}

struct Row {
    std::string_view name;
    void (*run)(const Step&);
};
const Row rows[] = {
    {"create", create},
    {"clone", clone},
    {"add", add_nodes},
    {"handle", conditional_handle},
    {"remove", destroy_node},
    {"instantiate", instantiate_named},
    {"upload", upload},
    {"launch", launch_named},
    {"update", update_named},
    {"setparams", set_params},
    {"enable", enable_node},
    {"destroy", destroy},
    {"execdestroy", destroy_exec},
    {"brief", [](const Step&) { set_brief(); }},
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
    static const Step nothing;
    GraphCall call{.function = function, .kind = "create"};
    auto results = graph_calls(nothing, call, 1, [&](void* f) {
        int result = call_symbol(f, graph, 0u);
        call.graph = graph_key(*graph);
        return result;
    });
    require_success(result_of(results), function);
}

void instantiate_last(const Step& step, void* graph)
{
    static const Step nothing;
    auto function = instantiating_function(step, "instantiate");
    auto made = instantiate(nothing, function, graph);
    require_success(made.result, function);
    set_last_graph(made.handle);
}

// build KERNEL NODES [grid=] [block=] [smem=] [instantiate=...]
void build_graph(const Step& step)
{
    auto all = kernels();
    auto kernel = std::ranges::find_if(all, [&](const Kernel& k) { return step.word(0) == k.name; });
    auto name = kernel == all.end() ? unescaped(step.word(0)) : kernel->device_name;
    void* made = nullptr;
    create_graph("cuGraphCreate", &made);
    add_kernel_nodes(step, made, handle(name, HandleKind::function), step.number(1));
    instantiate_last(step, made);
}

// graph COUNT [fn=...] [stream=N]: launches the last graph. graph WORD ...: runs the function for WORD in the table
// above.
void graph_step(const Step& step)
{
    auto word = step.word(0);
    if (auto row = std::ranges::find(rows, word, &Row::name); row != std::end(rows))
        return row->run(step);
    void* last = last_graph();
    uint64_t count = step.number(0);
    if (!last)
        wrong(step, "no graph yet: use capture or build");
    launch(step, last, count);
}

} // namespace workload
