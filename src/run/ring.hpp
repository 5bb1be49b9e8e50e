// SPDX-License-Identifier: Apache-2.0
// Readers of the records that the kernel side sends in a ring buffer, and of event lines (option -e, one line per
// call). Draining is limited in time, because records may arrive faster than they can be printed.
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

// Reader of event lines (option -e, one line per call) in the order in which bpf/base/call.bpf.h sent them.
class Lines {
public:
    using Handler = std::function<void(const void* record, size_t size)>;

    // Number of lines that fit into this amount of memory.
    static uint32_t places_in(uint64_t bytes);
    // Mask for the number of pending lines. The kernel side wakes the reader when the masked bits are all 0. This
    // happens each time about an eighth of the buffer has been filled.
    static uint64_t wake_bits(uint32_t places);

    // map: descriptor of the map of lines. places: number of lines that it can hold. Throws Error.
    Lines(int map, uint32_t places);

    uint64_t sent() const; // number of lines sent since the start
    // Passes lines to the handler, up to line number `end` (exclusive). Stops early at a line that is still being
    // written, or at the time `until`. Returns true if lines are left because the time was up.
    bool drain(uint64_t end, const Handler& handler, std::chrono::steady_clock::time_point until);

private:
    // Publishes the number of lines read, so that the kernel side can overwrite these lines. Called only once per many
    // lines, because each write of the counter slows down the traced threads that read it.
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
    // The object must have a map `ring`, and may have a map `lines`. Throws Error.
    Ring(bpf_object* object, Handler handler);

    // readable if records are pending in the ring buffer
    int descriptor() const { return ring_buffer__epoll_fd(ring_.get()); }

    // Passes the currently pending records to the handler, for at most this time. Returns true if some of them are
    // left.
    bool drain(std::chrono::nanoseconds longest = std::chrono::milliseconds(20));
    // Discards all pending records, and returns their number.
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
    std::exception_ptr failure_; // exception of handler_, which must not propagate through libbpf
    size_t left_ = 0;            // unread bytes of the records that were pending when drain() began
    Time until_;
};

} // namespace gpusnoop
