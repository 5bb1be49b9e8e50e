// SPDX-License-Identifier: Apache-2.0
#include "rows/ended_epochs.hpp"

#include "base/clock.hpp"

#include <cstring>
#include <span>
#include <utility>

namespace gpusnoop {

// Both sides read the same bytes.
static_assert(sizeof(place_key) == 28 && sizeof(range_key) == 24);

void EndedEpochs::sweep()
{
    const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    if (begin < not_before_ns_)
        return;
    std::map<ImageId, uint32_t> newest, changed;
    spaces_.for_each([&](const image& image, std::span<const address_space> values) {
        const uint32_t epoch = newest[image] = values.front().epoch;
        const auto before = swept_.find(image);
        if (epoch != (before == swept_.end() ? 0 : before->second))
            changed[image] = epoch;
    });
    swept_ = std::move(newest);
    if (changed.empty())
        return;
    const auto is_over = [&]<class Key>(Key key, const std::byte* bytes) {
        memcpy(&key, bytes, sizeof(key));
        const auto now = changed.find(key.image);
        return now != changed.end() && key.epoch < now->second; // a newer one may have begun since
    };
    for (const int fd : places_fds_)
        erase_keys(fd, [&](const std::byte* key) { return is_over(place_key{}, key); });
    erase_keys(ranges_fd_, [&](const std::byte* key) { return is_over(range_key{}, key); });
    const uint64_t end = clock_ns(CLOCK_MONOTONIC);
    not_before_ns_ = end + 20 * (end - begin);
}

} // namespace gpusnoop
