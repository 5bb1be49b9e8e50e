// SPDX-License-Identifier: Apache-2.0
// Where a kernel's name is from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpusnoop {

// The most certain first.
enum class NameSource : uint8_t {
    lookup,       // the driver was asked for this kernel by name, under our eyes
    registration, // the program's own code registers this host stub under this name
    symbol,       // the symbol at the host stub's address
    handle,       // the program's variable for the handle of this stub (CUDA 13) holds this handle
    correlation,  // the driver was called with this handle within a launch of a kernel whose name is known
    object,       // read from an object of the driver's own or of HIP's, where others keep their kernels' names, too
    none,
};

constexpr std::string_view source_name(NameSource source)
{
    constexpr std::string_view names[] = {"lookup", "registration", "symbol", "handle", "correlation", "object", ""};
    return names[static_cast<uint8_t>(source)];
}

struct KernelName {
    std::string text;
    NameSource source = NameSource::none;
    bool is_mangled = false; // until a helper has answered
};

} // namespace gpusnoop
