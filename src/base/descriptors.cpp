// SPDX-License-Identifier: Apache-2.0
#include "base/descriptors.hpp"

#include <cstdint>
#include <dirent.h>
#include <sys/resource.h>

namespace gpusnoop {

size_t descriptor_limit()
{
    rlimit limit{};
    return getrlimit(RLIMIT_NOFILE, &limit) ? SIZE_MAX : limit.rlim_cur;
}

size_t open_descriptors()
{
    DIR* folder = opendir("/proc/self/fd");
    if (!folder)
        return descriptor_limit(); // none is free
    size_t entries = 0;
    while (readdir(folder))
        entries++;
    closedir(folder);
    return entries - 3; // ".", "..", and the folder's own
}

} // namespace gpusnoop
