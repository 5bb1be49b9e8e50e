// SPDX-License-Identifier: Apache-2.0
// Whether the sanitizers watch: what takes seconds without them takes minutes with them, and shows them nothing new by
// then.
#pragma once

namespace gpusnoop {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

} // namespace gpusnoop
