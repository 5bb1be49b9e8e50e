// SPDX-License-Identifier: Apache-2.0
#include "capture.hpp"

#include <algorithm>
#include <unistd.h>

using namespace standin;

namespace {

enum { mode_global = 0, mode_relaxed = 2 };
enum { external = 1 }; // flag of cuEventRecordWithFlags and cuStreamWaitEvent: the call becomes a node

void add_stream(Stream* stream, const std::shared_ptr<Capture>& capture, const Clock& known)
{
    capture->streams[stream] = known;
    stream->capture = capture;
    stream->capturing = true;
}

void end(Capture& capture)
{
    capture.ended = true;
    auto streams = std::move(capture.streams);
    capture.streams.clear();
    for (auto& [stream, clock] : streams) {
        stream->capturing = false;
        stream->capture = nullptr; // may be the last reference to `capture`, which must not be used below
    }
}

int invalidate(Capture& capture, int result)
{
    capture.invalid = true;
    return result;
}

void merge(Clock& into, const Clock& more)
{
    for (auto [stream, position] : more)
        into[stream] = std::max(into[stream], position);
}

bool all_joined(const Capture& capture)
{
    const Clock& origin = capture.streams.at(capture.origin);
    return std::ranges::all_of(capture.streams, [&](const auto& entry) {
        auto own = entry.second.find(entry.first);
        if (own == entry.second.end())
            return true; // nothing was recorded
        auto known = origin.find(entry.first);
        return known != origin.end() && known->second >= own->second;
    });
}

int begin_capture(Stream* stream, int mode, Handle* to = nullptr)
{
    if (int result = begin(Class::graph_call))
        return result;
    if (!is_object(stream))
        return capture_unsupported;
    std::lock_guard hold(graph_lock);
    if (stream->capture)
        return illegal_state;
    auto graph = to ? find_graph(*to) : make_graph();
    if (!graph)
        return invalid_value;
    add_stream(stream, std::make_shared<Capture>(Capture{graph, !to, stream, mode, gettid(), false, false, {}}), {});
    return success;
}

int end_capture(Stream* stream, Handle* out)
{
    if (int result = begin(Class::graph_call))
        return result;
    if (!out)
        return invalid_value;
    *out = 0;
    std::lock_guard hold(graph_lock);
    auto capture = is_object(stream) ? stream->capture : nullptr;
    if (!capture)
        return illegal_state;
    if (capture->origin != stream)
        return invalidate(*capture, capture_unmatched);
    if (capture->mode != mode_relaxed && capture->thread != gettid())
        return capture_wrong_thread;
    int result = capture->invalid ? capture_invalidated : all_joined(*capture) ? success : capture_unjoined;
    end(*capture);
    Graph& graph = *capture->graph;
    if (result) {
        if (capture->own_graph)
            drop(graph);
        return result;
    }
    graph.record->captured = true;
    if (capture->own_graph)
        publish(graph);
    *out = graph.record->handle;
    return success;
}

int capture_info(Stream* stream, int* status, uint64_t* id, Handle* graph)
{
    std::lock_guard hold(graph_lock);
    auto capture = is_object(stream) ? stream->capture : nullptr;
    *status = !capture ? 0 : capture->invalid ? 2 : 1;
    if (capture && id)
        *id = reinterpret_cast<uintptr_t>(capture.get());
    if (graph)
        *graph = capture ? capture->graph->record->handle : 0;
    return success;
}

int record_event(Event* event, Stream* stream, unsigned flags)
{
    if (int result = admit())
        return result;
    if (!event)
        return invalid_handle;
    if (capturing(stream) && flags & external)
        return record(stream, {.type = NodeType::event_record});
    std::lock_guard hold(graph_lock);
    auto capture = is_object(stream) ? stream->capture : nullptr;
    if (capture && capture->invalid)
        return capture_invalidated;
    event->recorded = true;
    event->capture = capture;
    event->known = capture ? capture->streams[stream] : Clock{};
    return success;
}

int wait_event(Stream* stream, Event& event)
{
    std::lock_guard hold(graph_lock);
    auto mine = is_object(stream) ? stream->capture : nullptr;
    auto other = event.capture;
    if (other && other->ended)
        return captured_event;
    if ((mine && mine->invalid) || (other && other->invalid))
        return capture_invalidated;
    if (!other)
        return mine && event.recorded ? invalidate(*mine, capture_isolation) : success;
    if (!mine && !is_object(stream))
        return invalidate(*other, capture_implicit);
    if (!mine)
        add_stream(stream, other, event.known);
    else if (mine != other)
        return invalidate(*mine, invalidate(*other, capture_merge));
    else
        merge(mine->streams[stream], event.known);
    return success;
}

// Events complete at once, except events recorded in a capture, which never complete.
int query_event(Event* event)
{
    if (!event)
        return invalid_handle;
    if (int result = begin(Class::sync))
        return result;
    std::lock_guard hold(graph_lock);
    return event->capture ? invalidate(*event->capture, captured_event) : success;
}

} // namespace

int standin::record(Stream* stream, Node node)
{
    std::lock_guard hold(graph_lock);
    auto capture = stream->capture;
    if (!capture)
        return success; // another thread has just ended the capture
    if (capture->invalid)
        return capture_invalidated;
    append(*capture->graph, std::move(node));
    capture->streams[stream][stream]++;
    return success;
}

int standin::refuse_under_capture(Stream* stream)
{
    std::lock_guard hold(graph_lock);
    return stream->capture ? invalidate(*stream->capture, capture_unsupported) : success;
}

bool standin::invalidated(const Stream* stream)
{
    std::lock_guard hold(graph_lock);
    return stream->capture && stream->capture->invalid;
}

void standin::leave_captures(Stream* stream)
{
    std::lock_guard hold(graph_lock);
    auto capture = stream->capture;
    if (!capture)
        return;
    capture->invalid = true;
    if (capture->origin != stream) {
        capture->streams.erase(stream);
        return;
    }
    end(*capture);
    if (capture->own_graph)
        drop(*capture->graph);
}

// Returns whether a stream is capturing. The workload needs this for its truth file; it is not counted as an API call.
CONTROL(int, standin_is_capturing)(const Stream* stream)
{
    return capturing(stream);
}

DRIVER(cuStreamBeginCapture)(Stream* stream)
{
    return begin_capture(stream, mode_global);
}
DRIVER(cuStreamBeginCapture_v2)(Stream* stream, int mode)
{
    return begin_capture(stream, mode);
}
DRIVER(cuStreamBeginCaptureToGraph)(Stream* stream, Handle graph, const void*, const void*, size_t, int mode)
{
    return begin_capture(stream, mode, &graph);
}
DRIVER(cuStreamEndCapture)(Stream* stream, Handle* out)
{
    return end_capture(stream, out);
}
DRIVER(cuThreadExchangeStreamCaptureMode)(int* mode)
{
    static thread_local int current = mode_global;
    if (!mode)
        return invalid_value;
    std::swap(*mode, current);
    return success;
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
(Stream* stream, int* status, uint64_t* id, Handle* graph, const void**, size_t* dependencies)
{
    if (dependencies)
        *dependencies = 0;
    return capture_info(stream, status, id, graph);
}
DRIVER(cuStreamGetCaptureInfo_v3)
(Stream* stream, int* status, uint64_t* id, Handle* graph, const void**, const void**, size_t* dependencies)
{
    if (dependencies)
        *dependencies = 0;
    return capture_info(stream, status, id, graph);
}

DRIVER(cuEventRecord)(Event* event, Stream* stream)
{
    return record_event(event, stream, 0);
}
DRIVER(cuEventRecordWithFlags)(Event* event, Stream* stream, unsigned flags)
{
    return record_event(event, stream, flags);
}
DRIVER(cuStreamWaitEvent)(Stream* stream, Event* event, unsigned flags)
{
    if (!event)
        return invalid_handle;
    if (int result = begin(Class::sync))
        return result;
    if (capturing(stream) && flags & external)
        return record(stream, {.type = NodeType::event_wait});
    return wait_event(stream, *event);
}
DRIVER(cuEventSynchronize)(Event* event)
{
    return query_event(event);
}
DRIVER(cuEventQuery)(Event* event)
{
    return query_event(event);
}
