// SPDX-License-Identifier: Apache-2.0
// Streams, events and waits. Only kernels named spin_us_N take time. Without such a kernel, every wait returns at once,
// and every query reports completion. The effects of capture are in capture.cpp.
#include "capture.hpp"
#include "spin.hpp"

#include <set>

using namespace standin;

namespace {

std::mutex streams_lock;
std::set<Stream*> streams;
std::vector<Stream*> destroyed; // handles to be reused, the last destroyed first
std::vector<Event*> destroyed_events;

template<class T>
int create(T** out, std::vector<T*>& reusable)
{
    if (!current_context())
        return invalid_context;
    if (reusable.empty()) {
        *out = new T{};
    } else {
        *out = reusable.back();
        reusable.pop_back();
    }
    return success;
}

void destroy(Stream* stream)
{
    leave_captures(stream);
    destroyed.push_back(stream);
}

int wait_for(Stream* stream)
{
    if (int result = begin(Class::sync))
        return result;
    return capturing(stream) ? refuse_under_capture(stream) : success;
}

// Waits for kernels, unless the call has failed.
int wait_if_ok(int result)
{
    if (!result)
        wait_until_idle();
    return result;
}

// Waits for a value in memory: adds a node if the stream is capturing.
int wait_for_value(Stream* stream)
{
    int result = begin(Class::sync);
    return !result && capturing(stream) ? record(stream, {.type = NodeType::memop}) : result;
}

} // namespace

void standin::destroy_streams(const Context* owner)
{
    std::lock_guard hold(streams_lock);
    std::erase_if(streams, [&](Stream* stream) {
        if (stream->owner != owner)
            return false;
        destroy(stream);
        return true;
    });
}

DRIVER(cuStreamCreate)(Stream** out, unsigned)
{
    std::lock_guard hold(streams_lock);
    if (int result = create(out, destroyed))
        return result;
    (*out)->owner = current_context();
    streams.insert(*out);
    return success;
}

DRIVER(cuStreamDestroy_v2)(Stream* stream)
{
    if (int result = admit())
        return result;
    std::lock_guard hold(streams_lock);
    if (!streams.erase(stream))
        return invalid_handle;
    destroy(stream);
    return success;
}

RETURNS(cuStreamSynchronize, (Stream * stream), wait_if_ok(wait_for(stream)))
RETURNS(cuStreamQuery, (Stream * stream), wait_for(stream))
RETURNS(cuStreamWaitValue32, (Stream * stream, uintptr_t, uint32_t, unsigned), wait_for_value(stream))
RETURNS(cuStreamWaitValue32_v2, (Stream * stream, uintptr_t, uint32_t, unsigned), wait_for_value(stream))
RETURNS(cuStreamWaitValue64, (Stream * stream, uintptr_t, uint64_t, unsigned), wait_for_value(stream))
RETURNS(cuStreamWaitValue64_v2, (Stream * stream, uintptr_t, uint64_t, unsigned), wait_for_value(stream))
RETURNS(cuCtxSynchronize, (), wait_if_ok(begin(Class::sync)))
RETURNS(cuCtxSynchronize_v2, (Context*), wait_if_ok(begin(Class::sync)))

DRIVER(cuEventCreate)(Event** out, unsigned)
{
    std::lock_guard hold(streams_lock);
    return create(out, destroyed_events);
}

DRIVER(cuEventDestroy_v2)(Event* event)
{
    std::lock_guard hold(streams_lock);
    *event = Event{};
    destroyed_events.push_back(event);
    return success;
}
