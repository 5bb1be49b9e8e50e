// SPDX-License-Identifier: Apache-2.0
// Readable forms of mangled names. libstdc++'s demangler bounds neither time nor memory, so only a helper runs it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusnoop {

// Longer names, and names whose readable form is longer, stay as they are.
inline constexpr size_t mangled_max = 8 << 10;
inline constexpr size_t readable_max = 64 << 10;

// False if demangle() returns the name unchanged. Cheap, for any process.
bool may_be_mangled(std::string_view name);

// Returns names that are not mangled unchanged. Removes __device_stub__, the prefix of nvcc's and clang's host stubs
// (_Z21__device_stub__vecaddPf).
std::string demangle(std::string_view name);

} // namespace gpusnoop
