// SPDX-License-Identifier: Apache-2.0
// Modules, libraries, and lookups of kernel handles by name.
#include "module.hpp"

#include "spin.hpp"

#include <mutex>

using namespace standin;

namespace {

std::mutex lock; // one lock for all modules and libraries, because lookups are rare

int load(Module** out, const void* source)
{
    if (!initialized || !current_context())
        return initialized ? invalid_context : not_initialized;
    if (!out || !source)
        return invalid_value;
    *out = new Module;
    return success;
}

int load(Library** out, const void* source)
{
    if (!initialized)
        return not_initialized;
    if (!out || !source)
        return invalid_value;
    *out = new Library;
    return success;
}

} // namespace

DRIVER(cuModuleLoad)(Module** out, const char* path)
{
    return load(out, path);
}
DRIVER(cuModuleLoadData)(Module** out, const void* image)
{
    return load(out, image);
}
DRIVER(cuModuleLoadDataEx)(Module** out, const void* image, unsigned, void*, void*)
{
    return load(out, image);
}
DRIVER(cuModuleLoadFatBinary)(Module** out, const void* fatbin)
{
    return load(out, fatbin);
}

DRIVER(cuModuleUnload)(Module* module)
{
    if (!module)
        return invalid_handle;
    delete module;
    return success;
}

DRIVER(cuModuleGetFunction)(Function** out, Module* module, const char* name)
{
    if (!module)
        return invalid_handle;
    if (!out || !name)
        return invalid_value;
    if (!*name)
        return not_found;
    std::lock_guard hold(lock);
    auto [entry, added] = module->functions.try_emplace(name, Function{module, nullptr, {}, 0});
    entry->second.name = entry->first.c_str();
    *out = &entry->second;
    note_kernel(*out, entry->first);
    return success;
}

DRIVER(cuModuleGetFunctionCount)(unsigned* count, Module* module)
{
    std::lock_guard hold(lock);
    *count = static_cast<unsigned>(module->functions.size());
    return success;
}

DRIVER(cuModuleEnumerateFunctions)(Function** functions, unsigned n, Module* module)
{
    std::lock_guard hold(lock);
    for (auto& [name, function] : module->functions)
        if (n-- > 0)
            *functions++ = &function;
        else
            break;
    return success;
}

DRIVER(cuLibraryLoadData)(Library** out, const void* code, void*, void*, unsigned, void*, void*, unsigned)
{
    return load(out, code);
}

DRIVER(cuLibraryLoadFromFile)(Library** out, const char* path, void*, void*, unsigned, void*, void*, unsigned)
{
    return load(out, path);
}

DRIVER(cuLibraryUnload)(Library* library)
{
    if (!library)
        return invalid_handle;
    delete library;
    return success;
}

DRIVER(cuLibraryGetKernel)(Kernel** out, Library* library, const char* name)
{
    if (!library)
        return invalid_handle;
    if (!out || !name)
        return invalid_value;
    std::lock_guard hold(lock);
    auto [entry, added] = library->kernels.try_emplace(name);
    entry->second.library = library;
    entry->second.name = entry->first.c_str();
    *out = &entry->second;
    return success;
}

DRIVER(cuLibraryGetModule)(Module** out, Library* library)
{
    if (!library)
        return invalid_handle;
    *out = &library->module;
    return success;
}

DRIVER(cuKernelGetFunction)(Function** out, Kernel* kernel)
{
    if (!kernel)
        return invalid_handle;
    Context* context = current_context();
    if (!context)
        return invalid_context;
    std::lock_guard hold(lock);
    auto& function = kernel->functions[context->device];
    if (!function)
        function = std::make_unique<Function>(Function{kernel->library, kernel->name, {}, 0});
    *out = function.get();
    return success;
}

DRIVER(cuKernelGetLibrary)(Library** out, Kernel* kernel)
{
    *out = static_cast<Library*>(kernel->library);
    return success;
}

DRIVER(cuKernelGetName)(const char** name, Kernel* kernel)
{
    if (!kernel || !name)
        return kernel ? invalid_value : invalid_handle;
    *name = kernel->name;
    return success;
}

DRIVER(cuFuncGetName)(const char** name, Function* function)
{
    if (!function || !name)
        return function ? invalid_value : invalid_handle;
    *name = function->name;
    return success;
}

DRIVER(cuFuncGetModule)(void** module, Function* function)
{
    *module = function->module;
    return success;
}

DRIVER(cuFuncSetBlockShape)(Function* function, int x, int y, int z)
{
    if (!function || x <= 0 || y <= 0 || z <= 0)
        return function ? invalid_value : invalid_handle;
    function->block = {unsigned(x), unsigned(y), unsigned(z)};
    return success;
}

DRIVER(cuFuncSetSharedSize)(Function* function, unsigned bytes)
{
    if (!function)
        return invalid_handle;
    function->shared = bytes;
    return success;
}
