// SPDX-License-Identifier: Apache-2.0
#include "run/ring.hpp"

#include "util/error.hpp"

#include <algorithm>
#include <cerrno>
#include <linux/bpf.h>
#include <utility>

namespace gpusnoop {

Ring::Ring(int map, Take take) : take_(std::move(take)), ring_(ring_buffer__new(map, on_record, this, nullptr))
{
    if (!ring_)
        throw Error("the event buffer cannot be mapped: " + errno_text(errno), "try a smaller one with --ring-mb");
}

bool Ring::drain(std::chrono::nanoseconds longest)
{
    consume(longest);
    return left_ > 0;
}

size_t Ring::drop()
{
    size_t dropped = 0;
    const Take taker = std::exchange(take_, [&](const void*, size_t) { dropped++; });
    consume(std::chrono::nanoseconds::max());
    take_ = taker;
    return dropped;
}

void Ring::consume(std::chrono::nanoseconds longest)
{
    left_ = ring__avail_data_size(ring_buffer__ring(ring_.get(), 0));
    if (!left_)
        return;
    began_ = std::chrono::steady_clock::now();
    longest_ = longest;
    ring_buffer__consume(ring_.get()); // which would go on for as long as more is sent
    if (failure_)
        std::rethrow_exception(std::exchange(failure_, nullptr));
}

// libbpf counts a record as consumed before it looks at what is returned; a negative number ends it.
int Ring::on_record(void* self, void* record, size_t size)
{
    auto& ring = *static_cast<Ring*>(self);
    try {
        ring.take_(record, size);
    } catch (...) {
        ring.failure_ = std::current_exception();
        return -ECANCELED;
    }
    const size_t taken = (size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
    ring.left_ -= std::min(taken, ring.left_);
    return !ring.left_ || std::chrono::steady_clock::now() - ring.began_ > ring.longest_ ? -EAGAIN : 0;
}

} // namespace gpusnoop
