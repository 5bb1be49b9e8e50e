// SPDX-License-Identifier: Apache-2.0
// Named kernels of scripts. In a form with a runtime, each has a host stub, registered as in nvcc's and clang's output;
// other forms have only names. kernels.cpp is compiled once per form.
#pragma once

#include "../abi.hpp"

#include <span>

namespace workload {

struct Kernel {
    const char* name;        // in scripts
    const char* device_name; // as registered and looked up: mangled
    const void* stub;
    void (*start)(); // the stub, called after __cudaPushCallConfiguration
};
std::span<const Kernel> kernels();

// Major version of the CUDA runtime that this build of the workload uses: 12 or 13; 0 if it calls the driver directly.
extern const int runtime_major;

// Launches a kernel as its compiler implements <<<grid, block, shared, stream>>>.
int launch_configured(const Kernel&, standin::Dim3 grid, standin::Dim3 block, size_t shared, void* stream);

} // namespace workload
