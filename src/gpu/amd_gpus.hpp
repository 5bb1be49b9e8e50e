// SPDX-License-Identifier: Apache-2.0
// The figures of AMD's GPUs behind the same interface as those that NVML has of NVIDIA's.
#pragma once

#include "gpu/nvml.hpp"

#include <memory>
#include <string>

namespace gpusnoop {

// first: the number of the first device, behind those of NVIDIA's. root: in whose sys and proc. nullptr: there is none
// that amdgpu, the kernel's driver, serves.
std::unique_ptr<Nvml> open_amd_gpus(unsigned first, const std::string& root = "");

} // namespace gpusnoop
