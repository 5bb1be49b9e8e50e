// SPDX-License-Identifier: Apache-2.0
#include "cupti.hpp"

#include <dlfcn.h>

namespace witness {

Cupti::Cupti(const char* path)
{
    void* library =
        dlopen(path, RTLD_NOW | RTLD_LOCAL); // never closed: the driver calls into it until the process exits
    if (!library) {
        missing_ = dlerror();
        return;
    }
#define RESOLVE(name, ...)                                                                                             \
    name = reinterpret_cast<decltype(name)>(dlsym(library, "cupti" #name));                                            \
    if (!name)                                                                                                         \
        missing_ += " cupti" #name;
    CUPTI_FUNCTIONS(RESOLVE)
#undef RESOLVE
    if (!missing_.empty())
        missing_ = std::string(path) + " has no" + missing_;
}

std::string Cupti::message(const char* function, cupti::Result result) const
{
    const char* text = nullptr;
    GetResultString(result, &text);
    return std::string(function) + ": " + (text ? text : std::to_string(result));
}

} // namespace witness
