// SPDX-License-Identifier: Apache-2.0
// uprobe events in tracefs, for kernels without uprobe_multi. Any number of places share one event, so that attaching
// and detaching cost the same for one and for hundreds.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace gpusnoop {

// An own mount of tracefs that no path leads to; it goes away with the object.
class Tracefs {
public:
    Tracefs(); // throws Error
    int directory() const { return mount_.get(); }

private:
    Fd mount_;
};

struct LeftEvents {
    unsigned removed = 0;
    unsigned in_use = 0;    // of processes that have ended here, but the kernel says that somebody uses them
    unsigned of_living = 0; // of other processes that are alive, whoever they are by now
};

// Removes the events of runs that were killed: they keep the file systems of their files in use.
LeftEvents remove_leftover_events(const Tracefs& tracefs);

// One event over places in one file; removed with the object.
class UprobeEvent {
public:
    // path: of the file, opened in this process. Throws Error.
    UprobeEvent(const Tracefs& tracefs, const std::string& path, std::span<const uint64_t> offsets, bool on_return);
    ~UprobeEvent();
    UprobeEvent(const UprobeEvent&) = delete;
    UprobeEvent& operator=(const UprobeEvent&) = delete;

    uint64_t id() const { return id_; } // for perf_event_open

private:
    void remove() noexcept;

    const Tracefs& tracefs_;
    std::string name_;
    uint64_t id_ = 0;
};

} // namespace gpusnoop
