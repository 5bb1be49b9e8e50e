// SPDX-License-Identifier: Apache-2.0
// Waiting for the device, asking it, and having a stream wait. A new function is a row.
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
    unsigned flags = 0;
};

enum class What { waits, asks, enqueues };
enum Uses { nothing = 0, a_stream = 1, an_event = 2 };

struct Row {
    const char* name; // without _ptsz
    What what;
    int uses;
    int (*call)(void* function, const Target&);
    const char* nested = "";
};

int on_context(void* f, const Target&)
{
    return call_symbol(f, static_cast<void*>(nullptr)); // _v2: the current one
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
    return call_symbol(f, t.stream, t.event, t.flags);
}
int wait_value(void* f, const Target& t) // 32 bits wide or 64, in the same register
{
    static uint64_t value = 0;
    return call_symbol(f, t.stream, &value, 0ull, 0u);
}

using enum What;
const Row rows[] = {
    {"cuCtxSynchronize", waits, nothing, on_context},
    {"cuCtxSynchronize_v2", waits, nothing, on_context},
    {"cuStreamSynchronize", waits, a_stream, on_stream},
    {"cuEventSynchronize", waits, an_event, on_event},
    {"cuStreamQuery", asks, a_stream, on_stream},
    {"cuEventQuery", asks, an_event, on_event},
    {"cuStreamWaitEvent", enqueues, a_stream | an_event, wait_event},
    {"cuStreamWaitValue32", enqueues, a_stream, wait_value},
    {"cuStreamWaitValue32_v2", enqueues, a_stream, wait_value},
    {"cuStreamWaitValue64", enqueues, a_stream, wait_value},
    {"cuStreamWaitValue64_v2", enqueues, a_stream, wait_value},
    {"cudaDeviceSynchronize", waits, nothing, on_context, "cuCtxSynchronize"},
    {"cudaThreadSynchronize", waits, nothing, on_context, "cuCtxSynchronize"},
    {"cudaStreamSynchronize", waits, a_stream, on_stream, "cuStreamSynchronize"},
    {"cudaEventSynchronize", waits, an_event, on_event, "cuEventSynchronize"},
    {"cudaStreamQuery", asks, a_stream, on_stream, "cuStreamQuery"},
    {"cudaEventQuery", asks, an_event, on_event, "cuEventQuery"},
    {"cudaStreamWaitEvent", enqueues, a_stream | an_event, wait_event, "cuStreamWaitEvent"},
};

} // namespace

// sync COUNT [fn=FUNCTION] [stream=N] [event=NAME] [flags=]
void synchronize(const Step& step)
{
    auto function = step.option("fn", runtime_major ? "cudaDeviceSynchronize" : "cuCtxSynchronize");
    auto row = std::ranges::find_if(rows, [&](const Row& r) { return without_suffix(function) == r.name; });
    if (row == std::end(rows))
        wrong(step, "nothing waits or asks by " + function);
    Pace pace(step);
    if (!is_runtime(function))
        ready_driver();

    Target t = {.stream = row->uses & a_stream ? stream(step) : nullptr};
    if (row->uses & an_event)
        t.event = step.has("event") ? named_event(step.option("event", "")) : event();
    t.flags = static_cast<unsigned>(step.number("flags", 0));
    Call call = call_of(function, row->what == asks ? "poll" : "sync");
    call.synchronous = row->what == waits;
    call.stream = reinterpret_cast<uintptr_t>(t.stream);
    call.handle = reinterpret_cast<uintptr_t>(t.event);
    void* target = symbol(function);
    auto results = make_calls<Timed::yes>(pace, step.number(0), [&] { return row->call(target, t); });
    add_results(call, results, pace, row->nested);
}

} // namespace workload
