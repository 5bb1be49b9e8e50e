// SPDX-License-Identifier: Apache-2.0
// Who captures or instantiates graphs again and again: what should happen a few times at the start, and then no more.
#pragma once

#include "names/kernel_names.hpp"

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

namespace gpusnoop {

// Where a process makes its graphs from.
struct StormSource {
    int32_t stack = -1;
    uint64_t caller = 0;
    auto operator<=>(const StormSource&) const = default;
};

struct Storm {
    ImageId image;
    uint64_t captures = 0; // of the last minute
    uint64_t instantiates = 0;
    StormSource source; // of most of them
};

class Storms {
public:
    static constexpr uint64_t minute_ns = 60'000'000'000;

    // limit: captures, or instantiations, in a minute that are no storm yet. warm_up_ns: from a process' first one on.
    Storms(uint64_t limit, uint64_t warm_up_ns) : limit_(limit), warm_up_ns_(warm_up_ns) {}

    // Times are CLOCK_MONOTONIC, and do not go back.
    void add(const ImageId& image, const StormSource& source, uint64_t captures, uint64_t instantiates,
             uint64_t now_ns);

    // Those that go on now, each told again only after a minute.
    std::vector<Storm> drain(uint64_t now_ns);

    void forget(const std::set<ImageId>& images);

private:
    struct Made {
        uint64_t time_ns;
        StormSource source;
        uint64_t captures;
        uint64_t instantiates;
    };

    struct Process {
        uint64_t first_ns = 0;
        uint64_t reported_ns = 0; // 0: never
        std::deque<Made> made;    // in the last minute, and not in the warm-up
    };

    uint64_t limit_;
    uint64_t warm_up_ns_;
    std::map<ImageId, Process> processes_;
};

} // namespace gpusnoop
