// SPDX-License-Identifier: Apache-2.0
// Stream capture: calls on a capturing stream become nodes of a graph. Events add further streams to a capture; these
// streams must join its origin before the capture ends.
#pragma once

#include "graph.hpp"

#include <map>

namespace standin {

// Vector clock of a stream or event: for each stream of the capture, the number of its recorded nodes that the stream
// or event depends on.
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
    bool recorded = false;
    std::shared_ptr<Capture> capture{}; // the capture that last recorded this event, if any
    Clock known{};
};

// Effects of calls on capturing streams. Functions that return an int return the call's result. Each function acquires
// graph_lock.
int record(Stream*, Node);
int refuse_under_capture(Stream*); // for calls that are not allowed during a capture: invalidates it
bool invalidated(const Stream*);
void leave_captures(Stream*);         // on destruction of the stream
void destroy_streams(const Context*); // on destruction of their context

} // namespace standin
