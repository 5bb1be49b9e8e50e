// SPDX-License-Identifier: Apache-2.0
// C++ name demangler. libstdc++'s demangler bounds neither time nor memory, so only a helper process runs it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusnoop {

// Bytes; longer names, and names whose demangled form is longer, stay mangled.
inline constexpr size_t mangled_max = 8 << 10;
inline constexpr size_t readable_max = 64 << 10;

// False if demangle() would return the name unchanged. Cheap, and safe in any process.
bool may_be_mangled(std::string_view name);

// A name that is not mangled is returned unchanged. Removes __device_stub__, the prefix of nvcc's and clang's host
// stubs (_Z21__device_stub__vecaddPf).
std::string demangle(std::string_view name);

} // namespace gpusnoop
