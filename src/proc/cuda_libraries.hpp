// SPDX-License-Identifier: Apache-2.0
// What the libraries of CUDA and HIP are called, and where they are installed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// libcuda.so.1 and libcuda.so.<driver>, in the forward-compatibility folder and under WSL, too; libcuda-d0da41ae.so.1
// where a wheel carries one.
bool is_driver(std::string_view path);

// libcudart.so.12 and what wheels make of it: libcudart-d0da41ae.so.11.0.
bool is_runtime(std::string_view path);

// libamdhip64.so.6 of AMD, by whatever number and in whatever wheel.
bool is_hip(std::string_view path);

// Any of these.
bool is_cuda(std::string_view path);

// libnccl.so.2 and libnccl-d0da41ae.so.2; AMD's librccl.so.1 has the same functions.
bool is_nccl(std::string_view path);

// What is in a memfd is not told by its name, which may be anything.
bool is_memfd(std::string_view path);

// What a driver is called there.
inline constexpr std::string_view driver_names[] = {"libcuda.so.1", "libamdhip64.so.7", "libamdhip64.so.6",
                                                    "libamdhip64.so.5"};

// The folders that a process would find a driver in: the usual ones, and those of LD_LIBRARY_PATH in the environment
// that it was started with; absolute ones, a few at most.
std::vector<std::string> driver_folders(std::string_view environment);

} // namespace gpusnoop
