// SPDX-License-Identifier: Apache-2.0
// File names and installation folders of CUDA and HIP libraries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// True for libcuda.so.1 and libcuda.so.<driver version>, also in the forward-compatibility folder and under WSL, and
// for names such as libcuda-d0da41ae.so.1, which Python wheels use.
bool is_driver(std::string_view path);

// True for names such as libcudart.so.12 and, in Python wheels, libcudart-d0da41ae.so.11.0.
bool is_runtime(std::string_view path);

// True for AMD's libamdhip64.so.6 and other versions, also if a Python wheel has renamed it.
bool is_hip(std::string_view path);

// True for a driver, runtime or HIP library.
bool is_cuda(std::string_view path);

// True for names such as libnccl.so.2 and libnccl-d0da41ae.so.2, and AMD's librccl.so.1, which has the same functions.
bool is_nccl(std::string_view path);

// True for a memfd ("/memfd:NAME"). Its name is arbitrary, so a memfd may contain any library.
bool is_memfd(std::string_view path);

// File names of drivers to search for in driver_folders().
inline constexpr std::string_view driver_names[] = {"libcuda.so.1", "libamdhip64.so.7", "libamdhip64.so.6",
                                                    "libamdhip64.so.5"};

// Returns the folders in which a process with this environment would find a driver: the standard folders, and those in
// its LD_LIBRARY_PATH.
std::vector<std::string> driver_folders(std::string_view environment);

} // namespace gpusnoop
