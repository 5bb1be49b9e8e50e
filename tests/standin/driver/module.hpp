// SPDX-License-Identifier: Apache-2.0
// Modules and libraries. The stand-in has no device code, so it finds any kernel name in any module.
#pragma once

#include "state.hpp"

#include <map>
#include <string>

namespace standin {

// The name is at offset 8, as in the real CUfunc_st.
struct Function {
    void* module;
    const char* name;
    Dim3 block; // set by cuFuncSetBlockShape, used by cuLaunch and cuLaunchGrid
    unsigned shared;
};
static_assert(offsetof(Function, name) == 8);

// The layout of the real CUkernel is unknown, so the name is deliberately at another offset than in Function.
struct Kernel {
    void* library;
    uint64_t reserved[3];
    const char* name;
    std::unique_ptr<Function> functions[device_count];
};

// A Function exists once per module and name, until the module is unloaded.
struct Module {
    std::map<std::string, Function> functions;
};

struct Library {
    std::map<std::string, Kernel> kernels;
};

} // namespace standin
