// SPDX-License-Identifier: Apache-2.0
// Modules, libraries, and lookups of kernel handles by name.
#include "module.hpp"

#include "spin.hpp"

using namespace standin;

namespace {

std::mutex lock; // one lock for all modules and libraries, because lookups are rare

template<class T>
int unload(T* object)
{
    delete object;
    return object ? success : invalid_handle;
}

} // namespace

DRIVER(cuModuleLoadData)(Module** out, const void*)
{
    if (!initialized || !current_context())
        return initialized ? invalid_context : not_initialized;
    *out = new Module;
    return success;
}
RETURNS(cuModuleUnload, (Module * module), unload(module))

DRIVER(cuModuleGetFunction)(Function** out, Module* module, const char* name)
{
    if (!module)
        return invalid_handle;
    if (!*name)
        return not_found;
    std::lock_guard hold(lock);
    auto [entry, added] = module->functions.try_emplace(name, Function{module, nullptr, {}, 0});
    entry->second.name = entry->first.c_str();
    *out = &entry->second;
    note_kernel(*out, entry->first);
    return success;
}

DRIVER(cuLibraryLoadData)(Library** out, const void*, void*, void*, unsigned, void*, void*, unsigned)
{
    if (!initialized)
        return not_initialized;
    *out = new Library;
    return success;
}
RETURNS(cuLibraryUnload, (Library * library), unload(library))

DRIVER(cuLibraryGetKernel)(Kernel** out, Library* library, const char* name)
{
    if (!library)
        return invalid_handle;
    std::lock_guard hold(lock);
    auto [entry, added] = library->kernels.try_emplace(name);
    entry->second.library = library;
    entry->second.name = entry->first.c_str();
    *out = &entry->second;
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

DRIVER(cuFuncGetName)(const char** name, Function* function)
{
    if (!function)
        return invalid_handle;
    *name = function->name;
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
