// SPDX-License-Identifier: Apache-2.0
#include "tools/cudamemcpy/copies.hpp"

#include <algorithm>
#include <array>

namespace gpusnoop {

std::string_view direction_name(uint8_t direction)
{
    constexpr std::array<std::string_view, DIRECTIONS> names = {"unknown", "H2D", "D2H", "D2D",
                                                                "H2H",     "P2P", "set", "prefetch"};
    return direction < names.size() ? names[direction] : names[DIRECTION_UNKNOWN];
}

std::string_view memory_name(uint8_t memory)
{
    constexpr std::array<std::string_view, MEMORIES> names = {"unknown", "device",   "array", "managed",
                                                              "pinned",  "pageable", "host"};
    return memory < names.size() ? names[memory] : names[MEMORY_UNKNOWN];
}

void CopyGroup::add(const CallDelta& delta)
{
    const call_key& key = delta.key;
    const uint64_t calls_made = delta[CALL_COUNT] - delta[COPY_CONTINUED];
    total_ns += delta[CALL_TOTAL_NS];
    max_ns = std::max(max_ns, delta[CALL_MAX_NS]);
    if (key.duration != BUCKET_NONE)
        duration.add(key.duration, calls_made);
    if (key.copy.size != BUCKET_NONE)
        sizes.add(key.copy.size, delta[CALL_COUNT]);
    if (key.result) {
        errors += calls_made;
        failed_bytes += delta[COPY_BYTES];
        return;
    }
    if (key.flags & CALL_RECORDED) {
        captured += delta[CALL_COUNT];
        return;
    }
    copies += delta[CALL_COUNT];
    calls += calls_made;
    bytes += delta[COPY_BYTES];
    small += delta[COPY_SMALL];
    unsized += delta[COPY_UNSIZED];
    // Memset functions return before the memory is set, even functions without Async in their name.
    if (!(key.flags & CALL_ASYNCHRONOUS) && key.copy.direction != DIRECTION_SET)
        synchronous += delta[CALL_COUNT];
}

void CopyKey::set(const CopySettings& settings, const call_key& call)
{
    if (settings.direction)
        direction = call.copy.direction;
    if (settings.memory) {
        source = call.copy.memory >> 4;
        destination = call.copy.memory & 15;
    }
    if (settings.form)
        asynchronous = call.flags & CALL_ASYNCHRONOUS;
}

} // namespace gpusnoop
