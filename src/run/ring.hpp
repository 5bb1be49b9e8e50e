// SPDX-License-Identifier: Apache-2.0
// Readers of the records that the kernel side sends: a ring buffer, and the lines of -e. They drain for a limited time,
// as records may arrive faster than they can be printed.
#pragma once

#include "base/bpf_map.hpp"
#include "bpf/shared/call.h"

#include <bpf/libbpf.h>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>

namespace gpusnoop {

// Lines of -e (bpf/base/call.bpf.h), read in the order in which they were sent.
class Lines {
public:
    using Handler = std::function<void(const void* record, size_t size)>;

    // Number of lines that fit into this much memory.
    static uint32_t places_in(uint64_t bytes);
    // Mask of the number of pending lines: the bits are all 0 about each time another eighth of the places has filled.
    static uint64_t wake_bits(uint32_t places);

    // map: descriptor of the map, which has this many places. Throws Error.
    Lines(int map, uint32_t places);

    uint64_t sent() const; // number of lines sent so far
    // Passes lines before number `end` to the handler. Stops at a line that is still being written, or at the time
    // `until`; returns true in the latter case if lines are left.
    bool drain(uint64_t end, const Handler& handler, std::chrono::steady_clock::time_point until);

private:
    // Called once per many lines: each write of the counter slows down the traced threads, which read it.
    void publish_taken();
    struct PublishOnReturn {
        explicit PublishOnReturn(Lines& lines) : lines_(lines) {}
        ~PublishOnReturn() { lines_.publish_taken(); }
        Lines& lines_;
    };
    volatile line_positions& positions() const { return reinterpret_cast<volatile line_positions&>(array_[0]); }

    SharedArray<line> array_;
    uint32_t places_;
    uint64_t taken_ = 0;
};

class Ring {
public:
    using Handler = std::function<void(const void* record, size_t size)>;
    // Reads the maps `ring` and `lines` of the object. Throws Error.
    Ring(bpf_object* object, Handler handler);

    int descriptor() const { return ring_buffer__epoll_fd(ring_.get()); } // readable if records are pending

    // Passes on the records pending at the time of the call, for at most this long. Returns true if some are left.
    bool drain(std::chrono::nanoseconds longest = std::chrono::milliseconds(20));
    // Discards the pending records and returns their number.
    size_t drop();

private:
    static int on_record(void* self, void* record, size_t size);

    struct Deleter {
        void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
    };

    using Time = std::chrono::steady_clock::time_point;

    void consume(Time until);

    Handler handler_;
    std::optional<Lines> lines_;
    std::unique_ptr<ring_buffer, Deleter> ring_;
    std::exception_ptr failure_; // thrown by handler_; must not pass through libbpf
    size_t left_ = 0;            // remaining bytes of the records pending when drain() began
    Time until_;
};

} // namespace gpusnoop
