// SPDX-License-Identifier: Apache-2.0
// The records that the kernel side sends, lines behind all others, in portions: it may send them faster than anybody
// prints them.
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

// The lines of -e (bpf/base/call.bpf.h), read in the order in which they were sent.
class Lines {
public:
    using Take = std::function<void(const void* record, size_t size)>;

    // So many elements of the map make so many places; bytes: of memory.
    static uint32_t places_in(uint64_t bytes);
    // The bits of the number of lines that wait that are all 0 when these have become an eighth more, or so.
    static uint64_t wake_bits(uint32_t places);

    // map: its descriptor, with so many places. Throws Error.
    Lines(int map, uint32_t places);

    uint64_t sent() const; // up to now
    // Hands over those before `end`, until it takes too long or comes to one that is still being written. True where
    // there was no time for some.
    bool drain(uint64_t end, const Take& take, std::chrono::steady_clock::time_point until);

private:
    // Seldom: the traced threads look at the number each time.
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
    using Take = std::function<void(const void* record, size_t size)>;
    // Of the object's maps. Throws Error.
    Ring(bpf_object* object, Take take);

    int descriptor() const { return ring_buffer__epoll_fd(ring_.get()); } // readable: there are records

    // Hands over what is there now, but for what this takes too long for. True where some of that is left.
    bool drain(std::chrono::nanoseconds longest = std::chrono::milliseconds(20));
    // How many records that leaves; they are gone.
    size_t drop();

private:
    static int on_record(void* self, void* record, size_t size);

    struct Deleter {
        void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
    };

    using Time = std::chrono::steady_clock::time_point;

    void consume(Time until);

    Take take_;
    std::optional<Lines> lines_;
    std::unique_ptr<ring_buffer, Deleter> ring_;
    std::exception_ptr failure_; // of take_: it must not pass through libbpf
    size_t left_ = 0;            // bytes of what was there when drain() began
    Time until_;
};

} // namespace gpusnoop
