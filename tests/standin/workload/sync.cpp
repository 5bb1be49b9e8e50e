// SPDX-License-Identifier: Apache-2.0
// The step "sync": waits for the device, polls for completion, or makes a stream wait. To add a function, add a row.
#include "calls.hpp"
#include "kernels.hpp"
#include "session.hpp"
#include "steps.hpp"
#include "symbols.hpp"

#include <algorithm>

namespace workload {
namespace {

struct Target {
    void* stream = nullptr;
    void* event = nullptr;
};

enum class Action { waits, polls, enqueues };
enum Uses { nothing = 0, uses_stream = 1, uses_event = 2 };

struct Row {
    const char* name; // without _ptsz
    Action action;
    int uses;
    int (*call)(void* function, const Target&);
    const char* nested = "";
};

int on_context(void* f, const Target&)
{
    return call_symbol(f, static_cast<void*>(nullptr)); // _v2 takes a context; null: the current one
}
int on_stream(void* f, const Target& t)
{
    return call_symbol(f, t.stream);
}
int on_event(void* f, const Target& t)
{
    return call_symbol(f, t.event);
}
int wait_event(void* f, const Target& t)
{
    return call_symbol(f, t.stream, t.event, 0u);
}
int wait_value(void* f, const Target& t) // functions for 32-bit values access half of `value`
{
    static uint64_t value = 0;
    return call_symbol(f, t.stream, &value, 0ull, 0u);
}

using enum Action;
const Row rows[] = {
    {"cuCtxSynchronize", waits, nothing, on_context},
    {"cuCtxSynchronize_v2", waits, nothing, on_context},
    {"cuStreamSynchronize", waits, uses_stream, on_stream},
    {"cuEventSynchronize", waits, uses_event, on_event},
    {"cuStreamQuery", polls, uses_stream, on_stream},
    {"cuEventQuery", polls, uses_event, on_event},
    {"cuStreamWaitEvent", enqueues, uses_stream | uses_event, wait_event},
    {"cuStreamWaitValue32", enqueues, uses_stream, wait_value},
    {"cuStreamWaitValue32_v2", enqueues, uses_stream, wait_value},
    {"cuStreamWaitValue64", enqueues, uses_stream, wait_value},
    {"cuStreamWaitValue64_v2", enqueues, uses_stream, wait_value},
    {"cudaDeviceSynchronize", waits, nothing, on_context, "cuCtxSynchronize"},
    {"cudaThreadSynchronize", waits, nothing, on_context, "cuCtxSynchronize"},
    {"cudaStreamSynchronize", waits, uses_stream, on_stream, "cuStreamSynchronize"},
    {"cudaEventSynchronize", waits, uses_event, on_event, "cuEventSynchronize"},
    {"cudaStreamQuery", polls, uses_stream, on_stream, "cuStreamQuery"},
    {"cudaEventQuery", polls, uses_event, on_event, "cuEventQuery"},
    {"cudaStreamWaitEvent", enqueues, uses_stream | uses_event, wait_event, "cuStreamWaitEvent"},
};

} // namespace

// sync COUNT [fn=FUNCTION] [stream=N] [event=NAME]
void synchronize(const Step& step)
{
    auto function = step.option("fn", runtime_major ? "cudaDeviceSynchronize" : "cuCtxSynchronize");
    auto row = std::ranges::find_if(rows, [&](const Row& r) { return without_suffix(function) == r.name; });
    if (row == std::end(rows))
        wrong(step, function + " does not wait or poll");
    Pace pace(step);
    if (!is_runtime(function))
        ready_driver();

    Target t = {.stream = row->uses & uses_stream ? stream(step) : nullptr};
    if (row->uses & uses_event)
        t.event = step.has("event") ? named_event(step.option("event", "")) : event();
    Call call = call_of(function, row->action == polls ? "poll" : "sync");
    call.synchronous = row->action == waits;
    call.stream = reinterpret_cast<uintptr_t>(t.stream);
    call.handle = reinterpret_cast<uintptr_t>(t.event);
    void* target = symbol(function);
    auto results = make_calls<Timed::yes>(pace, step.number(0), [&] { return row->call(target, t); });
    add_results(call, results, pace, row->nested);
}

} // namespace workload
