// SPDX-License-Identifier: Apache-2.0
// Which call of one rank is which of another one's, where nobody has counted them from the start.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace gpusnoop {

// Which call of `other` the first one of `one` is, counted from its first; nullopt where they do not tell. A call has
// been waited for by `done_ns`, or nobody has: never.
struct Pattern {
    uint64_t ns, done_ns, signature;
    static constexpr uint64_t never = UINT64_MAX;
};
std::optional<int64_t> shift_between(std::span<const Pattern> one, std::span<const Pattern> other);

} // namespace gpusnoop
