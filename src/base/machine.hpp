// SPDX-License-Identifier: Apache-2.0
// Constants that depend on the processor architecture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <linux/audit.h>
#include <string_view>
#include <unistd.h>

namespace gpusnoop::machine {

#if defined(__aarch64__)
#define GPUSNOOP_LIBRARIES "aarch64-linux-gnu" // Debian's multiarch folder
// The last three folders are for Jetson: JetPack 5 and older, JetPack 6, and Jetson Linux r39, respectively.
constexpr std::string_view driver_folders[] = {"/usr/lib/" GPUSNOOP_LIBRARIES, "/usr/lib/" GPUSNOOP_LIBRARIES "/tegra",
                                               "/usr/lib/" GPUSNOOP_LIBRARIES "/nvidia",
                                               "/opt/nvidia/l4t-gpu-libs/nvgpu"};
constexpr uint32_t audit_arch = AUDIT_ARCH_AARCH64;
constexpr uint64_t addresses_end = uint64_t{1} << 52; // upper bound of user addresses (CONFIG_ARM64_VA_BITS_52)
constexpr int uprobe_return_call = 0;                 // no system call: return probes use a breakpoint on arm64
#else
#define GPUSNOOP_LIBRARIES "x86_64-linux-gnu"
constexpr std::string_view driver_folders[] = {"/usr/lib/" GPUSNOOP_LIBRARIES};
constexpr uint32_t audit_arch = AUDIT_ARCH_X86_64;
constexpr uint64_t addresses_end = uint64_t{1} << 47;
constexpr int uprobe_return_call = 335; // __NR_uretprobe, the system call that return probes use
#endif

// 4 KiB on x86-64; 4, 16 or 64 KiB on arm64.
inline size_t page_size()
{
    return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

} // namespace gpusnoop::machine
