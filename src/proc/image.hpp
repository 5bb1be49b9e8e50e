// SPDX-License-Identifier: Apache-2.0
// A program image of a process, as the kernel side numbers them, ordered for maps.
#pragma once

#include "bpf/shared/process.h"

#include <compare>
#include <tuple>

// Where the type is, so that std::map finds them.
inline bool operator==(const image& a, const image& b)
{
    return std::tie(a.pid, a.serial) == std::tie(b.pid, b.serial);
}

inline auto operator<=>(const image& a, const image& b)
{
    return std::tie(a.pid, a.serial) <=> std::tie(b.pid, b.serial);
}

namespace gpusnoop {

using ImageId = ::image;

} // namespace gpusnoop
