// SPDX-License-Identifier: Apache-2.0
// Where a function's return value is found from its first argument: what has been loaded on the way. The same on all
// machines; which instructions do it is each one's own.
#pragma once

#include "code/decoder.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace gpusnoop {

// What a register holds: what has been loaded on the way from the argument, and what has been added since.
struct Way {
    static constexpr size_t steps_max = 64;
    static constexpr int deepest = 3; // calls within calls
    static constexpr int64_t offset_max = 4096;
    static constexpr size_t loads_max = 4;

    Path loads;
    int64_t added = 0;
};

inline std::optional<Way> plus(std::optional<Way> way, int64_t number)
{
    if (way && (number < 0 || (way->added += number) > Way::offset_max))
        way.reset();
    return way;
}

// The pointer at that place.
inline std::optional<Way> loaded_from(std::optional<Way> place)
{
    if (!place || place->loads.size() >= Way::loads_max)
        return std::nullopt;
    place->loads.push_back(static_cast<uint32_t>(std::exchange(place->added, 0)));
    return place;
}

inline std::optional<Path> path_by(const std::optional<Way>& returned)
{
    return returned && returned->added == 0 && !returned->loads.empty() ? std::optional(returned->loads) : std::nullopt;
}

} // namespace gpusnoop
