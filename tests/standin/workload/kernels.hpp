// SPDX-License-Identifier: Apache-2.0
// Named kernels of scripts. In forms of the workload with a runtime, each kernel has a host stub, registered as in
// nvcc's and clang's output. In other forms, kernels have only names. kernels.cpp is compiled once per form.
#pragma once

#include "../abi.hpp"

#include <span>
#include <string>

namespace workload {

struct Kernel {
    const char* name;        // in scripts
    const char* device_name; // mangled, as passed to registration and lookup
    const void* stub;
    void (*start)(); // the stub, called after __cudaPushCallConfiguration
};
std::span<const Kernel> kernels();
const Kernel* find_kernel(const std::string& name); // null: not a named kernel
std::string device_name(const std::string& kernel); // of any word that a script uses as a kernel

// Major version of the CUDA runtime that this build of the workload uses: 12 or 13; 0 if it calls the driver directly.
extern const int runtime_major;

// Launches a kernel in the same way as code compiled from kernel<<<grid, block, shared, stream>>>().
int launch_configured(const Kernel&, standin::Dim3 grid, standin::Dim3 block, size_t shared, void* stream);

} // namespace workload
