// SPDX-License-Identifier: Apache-2.0
// True in builds with sanitizers. Long tests then do less work, because otherwise they would take minutes and find no
// further errors.
#pragma once

namespace gpusnoop {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

} // namespace gpusnoop
