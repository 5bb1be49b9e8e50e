// SPDX-License-Identifier: Apache-2.0
// What a run that was killed has left in the system: the kernel takes back everything but the uprobe events of
// --attach tracefs, and files that were being written to the cache of kernel names.
#pragma once

#include <string>

namespace gpusnoop {

// Removes it, and says what that was, in lines for people. What belongs to a living process stays. Throws Error where
// this process may not.
std::string clean_up();

} // namespace gpusnoop
