// SPDX-License-Identifier: Apache-2.0
// File names and install folders of the libraries of CUDA and HIP.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// libcuda.so.1 and libcuda.so.<driver version>, also in the forward-compatibility folder and under WSL, and
// libcuda-d0da41ae.so.1 from a wheel.
bool is_driver(std::string_view path);

// libcudart.so.12, or libcudart-d0da41ae.so.11.0 from a wheel.
bool is_runtime(std::string_view path);

// AMD's libamdhip64.so.6, of any version, also from a wheel.
bool is_hip(std::string_view path);

// A driver, runtime or HIP library.
bool is_cuda(std::string_view path);

// libnccl.so.2 and libnccl-d0da41ae.so.2; AMD's librccl.so.1 has the same functions.
bool is_nccl(std::string_view path);

// A memfd. Its name may be anything.
bool is_memfd(std::string_view path);

// File names of drivers to look for in driver_folders().
inline constexpr std::string_view driver_names[] = {"libcuda.so.1", "libamdhip64.so.7", "libamdhip64.so.6",
                                                    "libamdhip64.so.5"};

// Folders in which a process would find a driver: the usual ones, and library_path() of its environment.
std::vector<std::string> driver_folders(std::string_view environment);

} // namespace gpusnoop
