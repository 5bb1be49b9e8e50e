// SPDX-License-Identifier: Apache-2.0
// Streams, events, waiting and capture. Nothing is ever pending, so every wait returns at once.
#include "graph.hpp"

using namespace standin;

namespace {

struct Event {
    unsigned flags;
};

int create(Stream** out, unsigned flags)
{
    if (!current_context() || !out)
        return out ? invalid_context : invalid_value;
    *out = new Stream;
    (*out)->flags = flags;
    return success;
}

int wait_for(Stream* stream)
{
    if (int result = begin(Class::sync))
        return result;
    return capturing(stream) ? capture_unsupported : success;
}

int begin_capture(Stream* stream, Graph* graph)
{
    if (!is_object(stream))
        return capture_unsupported;
    if (capturing(stream))
        return illegal_state;
    stream->capture = graph ? graph : new Graph;
    return success;
}

int capture_info(Stream* stream, int* status, uint64_t* id, Graph** graph)
{
    Graph* current = capturing(stream);
    *status = current ? 1 : 0;
    if (current && id)
        *id = reinterpret_cast<uintptr_t>(current);
    if (graph)
        *graph = current;
    return success;
}

} // namespace

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
    if (!is_object(stream))
        return invalid_handle;
    delete stream;
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
    return wait_for(stream);
}
DRIVER(cuStreamQuery)(Stream* stream)
{
    return wait_for(stream);
}
DRIVER(cuStreamWaitEvent)(Stream*, Event* event, unsigned)
{
    return event ? begin(Class::sync) : invalid_handle;
}
DRIVER(cuStreamWaitValue32)(Stream*, uintptr_t, uint32_t, unsigned)
{
    return begin(Class::sync);
}
DRIVER(cuStreamWaitValue32_v2)(Stream*, uintptr_t, uint32_t, unsigned)
{
    return begin(Class::sync);
}
DRIVER(cuStreamWaitValue64)(Stream*, uintptr_t, uint64_t, unsigned)
{
    return begin(Class::sync);
}
DRIVER(cuStreamWaitValue64_v2)(Stream*, uintptr_t, uint64_t, unsigned)
{
    return begin(Class::sync);
}
DRIVER(cuCtxSynchronize)()
{
    return begin(Class::sync);
}
DRIVER(cuCtxSynchronize_v2)(Context*)
{
    return begin(Class::sync);
}

DRIVER(cuEventCreate)(Event** out, unsigned flags)
{
    if (!current_context() || !out)
        return out ? invalid_context : invalid_value;
    *out = new Event{flags};
    return success;
}

DRIVER(cuEventDestroy_v2)(Event* event)
{
    if (!event)
        return invalid_handle;
    delete event;
    return success;
}

DRIVER(cuEventRecord)(Event* event, Stream*)
{
    return event ? begin(Class::sync) : invalid_handle;
}
DRIVER(cuEventRecordWithFlags)(Event* event, Stream*, unsigned)
{
    return event ? begin(Class::sync) : invalid_handle;
}
DRIVER(cuEventSynchronize)(Event* event)
{
    return event ? begin(Class::sync) : invalid_handle;
}
DRIVER(cuEventQuery)(Event* event)
{
    return event ? begin(Class::sync) : invalid_handle;
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

DRIVER(cuStreamBeginCapture)(Stream* stream)
{
    return begin_capture(stream, nullptr);
}
DRIVER(cuStreamBeginCapture_v2)(Stream* stream, int)
{
    return begin_capture(stream, nullptr);
}

DRIVER(cuStreamBeginCaptureToGraph)(Stream* stream, Graph* graph, const void*, const void*, size_t, int)
{
    return graph ? begin_capture(stream, graph) : invalid_value;
}

DRIVER(cuStreamEndCapture)(Stream* stream, Graph** out)
{
    if (!out)
        return invalid_value;
    *out = is_object(stream) ? stream->capture.exchange(nullptr) : nullptr;
    return *out ? success : illegal_state;
}

DRIVER(cuStreamIsCapturing)(Stream* stream, int* status)
{
    return capture_info(stream, status, nullptr, nullptr);
}

DRIVER(cuStreamGetCaptureInfo)(Stream* stream, int* status, uint64_t* id)
{
    return capture_info(stream, status, id, nullptr);
}

DRIVER(cuStreamGetCaptureInfo_v2)
(Stream* stream, int* status, uint64_t* id, Graph** graph, const void**, size_t* dependencies)
{
    if (dependencies)
        *dependencies = 0;
    return capture_info(stream, status, id, graph);
}

DRIVER(cuStreamGetCaptureInfo_v3)
(Stream* stream, int* status, uint64_t* id, Graph** graph, const void**, const void**, size_t* dependencies)
{
    if (dependencies)
        *dependencies = 0;
    return capture_info(stream, status, id, graph);
}
