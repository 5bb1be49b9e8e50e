// SPDX-License-Identifier: Apache-2.0
// The kernels a script can name. In a form with a runtime each has a host stub, registered as nvcc's and clang's output
// does; other forms have the names only. kernels.cpp is compiled once per form.
#pragma once

#include "../abi.hpp"

#include <span>

namespace workload {

struct Kernel {
    const char* name;        // in scripts
    const char* device_name; // as registered and looked up: mangled
    const void* stub;
    void (*start)(); // the call behind <<<>>>, after __cudaPushCallConfiguration
};
std::span<const Kernel> kernels();

// The runtime this form was built for: 12, 13 or 0.
extern const int runtime_major;

// <<<grid, block, shared, stream>>> for one of the kernels above, as its compiler would do it.
int launch_configured(const Kernel&, standin::Dim3 grid, standin::Dim3 block, size_t shared, void* stream);

} // namespace workload
