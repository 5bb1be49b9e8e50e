// SPDX-License-Identifier: Apache-2.0
// Capture: streams that record into a graph. Events carry it from one stream to others, and must bring it back.
#pragma once

#include "graph.hpp"

#include <map>

namespace standin {

// How far each stream of a capture has come, as far as one of them, or an event, knows.
using Clock = std::map<const Stream*, uint64_t>;

struct Capture {
    std::shared_ptr<Graph> graph;
    bool own_graph; // made for it
    Stream* origin;
    int mode, thread;
    bool invalid = false, ended = false;
    std::map<Stream*, Clock> streams;
};

struct Event {
    unsigned flags = 0;
    bool recorded = false;
    std::shared_ptr<Capture> capture{}; // where it was recorded last, if that was in one
    Clock seen{};
};

// What a call on a capturing stream does and returns; each takes the lock.
int record(Stream*, Node);
int refuse_under_capture(Stream*); // the call is not allowed there: it invalidates the capture
bool invalidated(const Stream*);
void leave_captures(Stream*);         // the stream is destroyed
void destroy_streams(const Context*); // with their context

} // namespace standin
