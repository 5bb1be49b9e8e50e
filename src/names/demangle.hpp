// SPDX-License-Identifier: Apache-2.0
// C++ name demangler. It uses libstdc++'s demangler, whose time and memory are unbounded, so it runs only in a helper
// process.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusnoop {

// Maximum bytes of a mangled and of a demangled name. Names beyond these limits stay mangled.
inline constexpr size_t mangled_max = 8 << 10;
inline constexpr size_t readable_max = 64 << 10;

// Returns false if demangle() would return the name unchanged. Cheap, and safe to call in any process.
bool may_be_mangled(std::string_view name);

// Demangles a name and removes __device_stub__, the prefix that nvcc and clang add to the names of host stubs
// (_Z21__device_stub__vecaddPf). A name that is neither mangled nor prefixed is returned unchanged.
std::string demangle(std::string_view name);

} // namespace gpusnoop
