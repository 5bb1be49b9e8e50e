// SPDX-License-Identifier: Apache-2.0
// True if built with sanitizers: long tests then run shorter, because they would take minutes and find nothing more.
#pragma once

namespace gpusnoop {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

} // namespace gpusnoop
