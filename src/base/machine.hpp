// SPDX-License-Identifier: Apache-2.0
// What depends on the machine that this runs on, where no room has more to say of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <linux/audit.h>
#include <string_view>
#include <unistd.h>

namespace gpusnoop::machine {

#if defined(__aarch64__)
#define GPUSNOOP_LIBRARIES "aarch64-linux-gnu" // the folder of its libraries, as Debian calls it
// Jetson's folders for its driver: of JetPack up to 5, of 6, of Jetson Linux r39.
constexpr std::string_view driver_folders[] = {"/usr/lib/" GPUSNOOP_LIBRARIES, "/usr/lib/" GPUSNOOP_LIBRARIES "/tegra",
                                               "/usr/lib/" GPUSNOOP_LIBRARIES "/nvidia",
                                               "/opt/nvidia/l4t-gpu-libs/nvgpu"};
constexpr uint32_t audited_as = AUDIT_ARCH_AARCH64;
constexpr uint64_t addresses_end = uint64_t{1} << 52; // of a process, with CONFIG_ARM64_VA_BITS_52
constexpr int uprobe_return_call = 0;                 // there is none: a return probe is a breakpoint, too
#else
#define GPUSNOOP_LIBRARIES "x86_64-linux-gnu"
constexpr std::string_view driver_folders[] = {"/usr/lib/" GPUSNOOP_LIBRARIES};
constexpr uint32_t audited_as = AUDIT_ARCH_X86_64;
constexpr uint64_t addresses_end = uint64_t{1} << 47;
constexpr int uprobe_return_call = 335; // __NR_uretprobe
#endif

// 4 KiB on x86-64; arm64's kernels have 4, 16 or 64.
inline size_t page_size()
{
    return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

} // namespace gpusnoop::machine
