// SPDX-License-Identifier: Apache-2.0
// NVML's functions by name: older libraries lack some, or have them by another name.
#pragma once

#include <dlfcn.h>
#include <initializer_list>

namespace gpusnoop {

class NvmlSymbols {
public:
    explicit NvmlSymbols(void* library) : library_(library) {} // stays open as long as what was found is called

    // The first of the names that is there. False, and the function is as it was: there is none.
    template<class Function>
    bool find(Function& function, std::initializer_list<const char*> names) const
    {
        for (const char* const name : names)
            if (!function)
                function = reinterpret_cast<Function>(dlsym(library_, name));
        return function != nullptr;
    }

private:
    void* library_;
};

} // namespace gpusnoop
