// SPDX-License-Identifier: Apache-2.0
// C++ name demangler. libstdc++'s demangler bounds neither time nor memory, so only a helper process runs it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusnoop {

// Limits in bytes of the mangled name and of the demangled name. Beyond them, names stay mangled.
inline constexpr size_t mangled_max = 8 << 10;
inline constexpr size_t readable_max = 64 << 10;

// False if demangle() would return the name unchanged. Cheap, and safe in any process.
bool may_be_mangled(std::string_view name);

// Demangles a name, and removes __device_stub__, the prefix of the host stubs of nvcc and clang
// (_Z21__device_stub__vecaddPf). A name that is not mangled is returned unchanged.
std::string demangle(std::string_view name);

} // namespace gpusnoop
