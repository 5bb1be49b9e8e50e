// SPDX-License-Identifier: Apache-2.0
// Helpers of the stack programs: get the launch function, wait for a file, and stay alive at the end so that a tracer
// can still resolve addresses to names.
#pragma once

#include <cstdio>
#include <dlfcn.h>
#include <unistd.h>

namespace stacks {

using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void*,
                       void*);

inline Launch launch_of(const char* driver)
{
    return reinterpret_cast<Launch>(dlsym(dlopen(driver, RTLD_NOW), "cuLaunchKernel"));
}

inline void wait_for(const char* file)
{
    while (access(file, F_OK))
        usleep(1000);
}

inline void stay()
{
    puts("done");
    fflush(stdout);
    pause();
}

} // namespace stacks
