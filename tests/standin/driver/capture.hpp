// SPDX-License-Identifier: Apache-2.0
// Stream capture: streams record into a graph. Events add further streams to a capture; these must join again before it
// ends.
#pragma once

#include "graph.hpp"

#include <map>

namespace standin {

// Vector clock: for each stream of a capture, how many recorded nodes a stream or event depends on.
using Clock = std::map<const Stream*, uint64_t>;

struct Capture {
    std::shared_ptr<Graph> graph;
    bool own_graph; // the graph was created for this capture
    Stream* origin;
    int mode, thread;
    bool invalid = false, ended = false;
    std::map<Stream*, Clock> streams;
};

struct Event {
    unsigned flags = 0;
    bool recorded = false;
    std::shared_ptr<Capture> capture{}; // the capture that last recorded this event, if any
    Clock known{};
};

// Effects of calls on capturing streams. An int is the result of the call. Each function acquires graph_lock.
int record(Stream*, Node);
int refuse_under_capture(Stream*); // for calls that are not allowed in a capture, which they invalidate
bool invalidated(const Stream*);
void leave_captures(Stream*);         // on destruction of the stream
void destroy_streams(const Context*); // on destruction of their context

} // namespace standin
