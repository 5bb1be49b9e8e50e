// SPDX-License-Identifier: Apache-2.0
// The records that the kernel side sends, lines behind all others, in portions: it may send them faster than anybody
// prints them.
#pragma once

#include "run/lines.hpp"

#include <bpf/libbpf.h>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>

namespace gpusnoop {

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
