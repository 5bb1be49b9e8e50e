// SPDX-License-Identifier: Apache-2.0
#include "capture.hpp"

#include <algorithm>
#include <unistd.h>

using namespace standin;

namespace {

enum { mode_global = 0, mode_relaxed = 2 };

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
    return locked_call(Class::graph_call, graph_lock, [&]() -> int {
        if (!is_object(stream))
            return capture_unsupported;
        if (stream->capture)
            return illegal_state;
        auto graph = to ? find_graph(*to) : make_graph();
        if (!graph)
            return invalid_value;
        add_stream(stream, std::make_shared<Capture>(Capture{graph, !to, stream, mode, gettid(), false, false, {}}),
                   {});
        return success;
    });
}

int end_capture(Stream* stream, Handle* out)
{
    if (int result = begin(Class::graph_call))
        return result;
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

int record_event(Event* event, Stream* stream)
{
    if (int result = admit())
        return result;
    if (!event)
        return invalid_handle;
    std::lock_guard hold(graph_lock);
    auto capture = is_object(stream) ? stream->capture : nullptr;
    if (capture && capture->invalid)
        return capture_invalidated;
    event->recorded = true;
    event->capture = capture;
    event->known = capture ? capture->streams[stream] : Clock{};
    return success;
}

int wait_event(Stream* stream, Event* event)
{
    if (!event)
        return invalid_handle;
    if (int result = begin(Class::sync))
        return result;
    std::lock_guard hold(graph_lock);
    auto mine = is_object(stream) ? stream->capture : nullptr;
    auto other = event->capture;
    if (other && other->ended)
        return captured_event;
    if ((mine && mine->invalid) || (other && other->invalid))
        return capture_invalidated;
    if (!other)
        return mine && event->recorded ? invalidate(*mine, capture_isolation) : success;
    if (!mine && !is_object(stream))
        return invalidate(*other, capture_implicit);
    if (!mine)
        add_stream(stream, other, event->known);
    else if (mine != other)
        return invalidate(*mine, invalidate(*other, capture_merge));
    else
        for (auto [known, position] : event->known)
            mine->streams[stream][known] = std::max(mine->streams[stream][known], position);
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

RETURNS(cuStreamBeginCapture, (Stream * stream), begin_capture(stream, mode_global))
RETURNS(cuStreamBeginCapture_v2, (Stream * stream, int mode), begin_capture(stream, mode))
RETURNS(cuStreamBeginCaptureToGraph, (Stream * stream, Handle graph, const void*, const void*, size_t, int mode),
        begin_capture(stream, mode, &graph))
RETURNS(cuStreamEndCapture, (Stream * stream, Handle* out), end_capture(stream, out))

DRIVER(cuStreamIsCapturing)(Stream* stream, int* status)
{
    *status = !capturing(stream) ? 0 : invalidated(stream) ? 2 : 1;
    return success;
}

RETURNS(cuEventRecord, (Event * event, Stream* stream), record_event(event, stream))
RETURNS(cuStreamWaitEvent, (Stream * stream, Event* event, unsigned), wait_event(stream, event))
RETURNS(cuEventSynchronize, (Event * event), query_event(event))
RETURNS(cuEventQuery, (Event * event), query_event(event))
