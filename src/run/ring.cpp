// SPDX-License-Identifier: Apache-2.0
#include "run/ring.hpp"

#include "base/bpf_map.hpp"
#include "base/error.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <linux/bpf.h>
#include <utility>

namespace gpusnoop {

static_assert(sizeof(line_positions) <= sizeof(line));

uint32_t Lines::places_in(uint64_t bytes)
{
    return static_cast<uint32_t>(bytes / sizeof(line));
}

uint64_t Lines::wake_bits(uint32_t places)
{
    return std::bit_floor(std::max(places / 8, 1U)) - 1;
}

Lines::Lines(int map, uint32_t places) : array_(map, size_t{1} + places), places_(places) {}

uint64_t Lines::sent() const
{
    return positions().reserved;
}

bool Lines::drain(uint64_t end, const Handler& handler, std::chrono::steady_clock::time_point until)
{
    const PublishOnReturn publish(*this);
    while (taken_ != end) {
        const volatile line& place = array_[1 + taken_ % places_];
        if (load_acquire(place.published) != taken_ + 1)
            return false; // the line is still being written; the next drain() will read it
        const call_event event = const_cast<const call_event&>(place.event);
        if (++taken_ % 256 == 0)
            publish_taken();
        handler(&event, sizeof(event));
        if (std::chrono::steady_clock::now() > until)
            return taken_ != end;
    }
    return false;
}

void Lines::publish_taken()
{
    // a release store, so that the lines are read before they may be overwritten
    store_release<__u64>(positions().consumed, taken_);
}

Ring::Ring(bpf_object* object, Handler handler)
    : handler_(std::move(handler)),
      ring_(ring_buffer__new(bpf_object__find_map_fd_by_name(object, "ring"), on_record, this, nullptr))
{
    if (!ring_)
        throw Error("cannot map the event buffer: " + errno_text(errno), "try a smaller one with --ring-mb");
    if (const bpf_map* lines = bpf_object__find_map_by_name(object, "lines"); lines && bpf_map__max_entries(lines) > 1)
        lines_.emplace(bpf_map__fd(lines), bpf_map__max_entries(lines) - 1);
}

bool Ring::drain(std::chrono::nanoseconds longest)
{
    // Reads the number of event lines before it drains the ring. The names that these lines need are then in the ring.
    const uint64_t end = lines_ ? lines_->sent() : 0;
    const Time until = std::chrono::steady_clock::now() + longest;
    consume(until);
    return left_ > 0 || (lines_ && lines_->drain(end, handler_, until));
}

size_t Ring::drop()
{
    size_t dropped = 0;
    const Handler saved = std::exchange(handler_, [&](const void*, size_t) { dropped++; });
    drain(std::chrono::hours(1));
    handler_ = saved;
    return dropped;
}

void Ring::consume(Time until)
{
    left_ = ring__avail_data_size(ring_buffer__ring(ring_.get(), 0));
    if (!left_)
        return;
    until_ = until;
    // If on_record() did not stop, all records were consumed. left_ may still include records that the kernel side
    // discarded, because on_record() is not called for them.
    if (ring_buffer__consume(ring_.get()) >= 0)
        left_ = 0;
    if (failure_)
        std::rethrow_exception(std::exchange(failure_, nullptr));
}

// Called by libbpf for each record. Even if it returns a negative value, which ends ring_buffer__consume(), libbpf
// counts the record as consumed.
int Ring::on_record(void* self, void* record, size_t size)
{
    auto& ring = *static_cast<Ring*>(self);
    try {
        ring.handler_(record, size);
    } catch (...) {
        ring.failure_ = std::current_exception();
        return -ECANCELED;
    }
    const size_t taken = (size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
    ring.left_ -= std::min(taken, ring.left_);
    return !ring.left_ || std::chrono::steady_clock::now() > ring.until_ ? -EAGAIN : 0;
}

} // namespace gpusnoop
