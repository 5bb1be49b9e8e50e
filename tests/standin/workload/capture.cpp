// SPDX-License-Identifier: Apache-2.0
// Stream capture, and events that add streams to it.
#include "graph.hpp"
#include "kernels.hpp"
#include "steps.hpp"

#include <map>
#include <mutex>

namespace workload {
namespace {

std::mutex lock;
std::map<void*, uint64_t> started; // stream -> time before the call that began its capture

void begin(const Step& step)
{
    constexpr unsigned mode = 0; // CU_STREAM_CAPTURE_MODE_GLOBAL; the first version of the function takes no mode
    ready_driver();
    void* s = stream(step, "1");
    GraphCall call{.function = function_of(step, "StreamBeginCapture", "_v2"), .kind = "begin"};
    call.stream = reinterpret_cast<uintptr_t>(s);
    uint64_t now = now_ns();
    auto results = graph_calls(step, call, 1, [&](void* f) { return call_symbol(f, s, mode); });
    std::lock_guard hold(lock);
    if (!result_of(results))
        started[s] = now;
}

// If the script names the graph, the call may fail. If not, the call must succeed, and the graph is instantiated.
void end(const Step& step)
{
    bool named = step.words.size() > 1;
    ready_driver();
    void* s = stream(step, "1");
    void* made = nullptr;
    GraphCall call{.function = function_of(step, "StreamEndCapture"), .kind = "end"};
    call.stream = reinterpret_cast<uintptr_t>(s);
    auto results = graph_calls(step, call, 1, [&](void* f) {
        int result = call_symbol(f, s, &made);
        call.graph = graph_key(result ? nullptr : made);
        return result;
    });
    uint64_t start = now_ns();
    if (!driver_is_capturing(s)) { // otherwise the call was refused, and the capture continues
        std::lock_guard hold(lock);
        if (auto since = started.extract(s))
            start = since.mapped();
    }
    if (int result = result_of(results)) {
        if (!named && !stopping())
            fail(call.function + " returned " + std::to_string(result));
        return;
    }
    add_capture(call.graph, now_ns() - start);
    if (named)
        remember_graph(step.word(1), made);
    else
        instantiate_last(made);
}

void destroy(const Step& step, const std::string& function, void* object)
{
    Pace pace(step);
    void* target = symbol(function);
    auto results = make_calls(pace, 1, [&] { return call_symbol(target, object); });
    Call call = call_of(function, "setup");
    call.handle = reinterpret_cast<uintptr_t>(object);
    if (!result_of(results))
        forget(object);
    add_results(call, results, pace);
}

} // namespace

// stream destroy [stream=N] [fn=]
void stream_step(const Step& step)
{
    if (step.word(0) != "destroy")
        wrong(step, "expected destroy");
    ready_driver();
    destroy(step, function_of(step, "StreamDestroy", "_v2"), stream(step, "1"));
}

// capture begin [stream=N] [to=GRAPH] [fn=]; capture end [GRAPH] [stream=N] [fn=]
void capture(const Step& step)
{
    if (step.word(0) == "begin")
        begin(step);
    else if (step.word(0) == "end")
        end(step);
    else
        wrong(step, "expected begin or end");
}

// event record EVENT [stream=] [fn=]; event wait EVENT with the same options
void event_step(const Step& step)
{
    bool record = step.word(0) == "record";
    if (!record && step.word(0) != "wait")
        wrong(step, "expected record or wait");
    if (!record) {
        Step sync = step;
        sync.words = {"1"};
        sync.options["event"] = step.word(1);
        sync.options.insert({"fn", runtime_major ? "cudaStreamWaitEvent" : "cuStreamWaitEvent"});
        return synchronize(sync);
    }
    auto function = function_of(step, "EventRecord");
    if (!is_runtime(function))
        ready_driver();
    void *e = named_event(step.word(1)), *s = stream(step);
    Pace pace(step);
    void* target = symbol(function);
    auto results = make_calls(pace, 1, [&] { return call_symbol(target, e, s); });
    Call call = call_of(function, "setup");
    call.handle = reinterpret_cast<uintptr_t>(e);
    add_results(call, results, pace);
}

} // namespace workload
