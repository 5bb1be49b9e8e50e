// SPDX-License-Identifier: Apache-2.0
// Streams, events and waits. Only kernels named spin_us_N take time. Without such a kernel, every wait returns at once,
// and every query reports completion. The effects of capture are in capture.cpp.
#include "capture.hpp"
#include "spin.hpp"

#include <mutex>
#include <set>
#include <vector>

using namespace standin;

namespace {

std::mutex streams_lock;
std::set<Stream*> streams;
std::vector<Stream*> destroyed; // handles to be reused, the last destroyed first
std::vector<Event*> destroyed_events;

int create(Stream** out, unsigned flags)
{
    if (!current_context() || !out)
        return out ? invalid_context : invalid_value;
    std::lock_guard hold(streams_lock);
    if (destroyed.empty()) {
        *out = new Stream;
    } else {
        *out = destroyed.back();
        destroyed.pop_back();
    }
    (*out)->owner = current_context();
    (*out)->flags = flags;
    streams.insert(*out);
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

// Handles a call that waits for a value in memory or writes one: adds a node if the stream is capturing.
int memory_operation(int result, Stream* stream)
{
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

DRIVER(cuStreamCreate)(Stream** out, unsigned flags)
{
    return create(out, flags);
}
DRIVER(cuStreamCreateWithPriority)(Stream** out, unsigned flags, int)
{
    return create(out, flags);
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

DRIVER(cuStreamGetFlags)(Stream* stream, unsigned* flags)
{
    *flags = is_object(stream) ? stream->flags : 0;
    return success;
}

DRIVER(cuStreamGetId)(Stream* stream, uint64_t* id)
{
    *id = reinterpret_cast<uintptr_t>(stream);
    return success;
}

DRIVER(cuStreamSynchronize)(Stream* stream)
{
    return wait_if_ok(wait_for(stream));
}
DRIVER(cuStreamQuery)(Stream* stream)
{
    return wait_for(stream);
}
#define WAIT_VALUE(name, type)                                                                                         \
    DRIVER(name)(Stream * stream, uintptr_t, type, unsigned)                                                           \
    {                                                                                                                  \
        return memory_operation(begin(Class::sync), stream);                                                           \
    }
#define WRITE_VALUE(name, type)                                                                                        \
    DRIVER(name)(Stream * stream, uintptr_t, type, unsigned)                                                           \
    {                                                                                                                  \
        return memory_operation(success, stream);                                                                      \
    }
WAIT_VALUE(cuStreamWaitValue32, uint32_t)
WAIT_VALUE(cuStreamWaitValue32_v2, uint32_t)
WAIT_VALUE(cuStreamWaitValue64, uint64_t)
WAIT_VALUE(cuStreamWaitValue64_v2, uint64_t)
WRITE_VALUE(cuStreamWriteValue32, uint32_t)
WRITE_VALUE(cuStreamWriteValue32_v2, uint32_t)
WRITE_VALUE(cuStreamWriteValue64, uint64_t)
WRITE_VALUE(cuStreamWriteValue64_v2, uint64_t)
DRIVER(cuStreamBatchMemOp)(Stream* stream, unsigned, const void*, unsigned)
{
    return memory_operation(success, stream);
}
DRIVER(cuStreamBatchMemOp_v2)(Stream* stream, unsigned, const void*, unsigned)
{
    return memory_operation(success, stream);
}
DRIVER(cuCtxSynchronize)()
{
    return wait_if_ok(begin(Class::sync));
}
DRIVER(cuCtxSynchronize_v2)(Context*)
{
    return wait_if_ok(begin(Class::sync));
}

DRIVER(cuEventCreate)(Event** out, unsigned flags)
{
    if (!current_context() || !out)
        return out ? invalid_context : invalid_value;
    std::lock_guard hold(streams_lock);
    if (destroyed_events.empty()) {
        *out = new Event{};
    } else {
        *out = destroyed_events.back();
        destroyed_events.pop_back();
    }
    (*out)->flags = flags;
    return success;
}

DRIVER(cuEventDestroy_v2)(Event* event)
{
    if (!event)
        return invalid_handle;
    std::lock_guard hold(streams_lock);
    *event = Event{};
    destroyed_events.push_back(event);
    return success;
}

DRIVER(cuEventElapsedTime)(float* ms, Event*, Event*)
{
    *ms = 0;
    return success;
}

DRIVER(cuEventElapsedTime_v2)(float* ms, Event* start, Event* end)
{
    return impl_cuEventElapsedTime(ms, start, end);
}
