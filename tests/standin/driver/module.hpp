// SPDX-License-Identifier: Apache-2.0
// Code objects. Any name is found in any module: the stand-in has no device code to look into.
#pragma once

#include "state.hpp"

#include <map>
#include <memory>
#include <string>

namespace standin {

// As in the real CUfunc_st, the name is at offset 8.
struct Function {
    void* module;
    const char* name;
    Dim3 block; // cuFuncSetBlockShape, for cuLaunch and cuLaunchGrid
    unsigned shared;
};
static_assert(offsetof(Function, name) == 8);

// Nothing is known about the real CUkernel, so the name is deliberately elsewhere.
struct Kernel {
    void* library;
    uint64_t reserved[3];
    const char* name;
    std::unique_ptr<Function> functions[device_count];
};

// One per (module, name), kept until the module is unloaded.
struct Module {
    std::map<std::string, Function> functions;
};

struct Library {
    std::map<std::string, Kernel> kernels;
    Module module;
};

} // namespace standin
