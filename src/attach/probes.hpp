// SPDX-License-Identifier: Apache-2.0
// THE table: every API function a tool may probe, and where it keeps its arguments. Argument places were taken from
// cuda.h and cuda_runtime_api.h (11.2 to 13.0) and are checked against compiled calls (tests/unit/abi).
#pragma once

#include "bpf/shared/probe.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

enum class Library : uint8_t {
    driver,  // libcuda.so*
    runtime, // libcudart*.so*, or a file that contains the static runtime
    nccl,    // libnccl.so*, librccl.so*, or a file that contains one of them
    hip,     // libamdhip64.so*: AMD's driver and runtime in one
};

// Which versions of a runtime a row holds for; the driver's ABI is frozen per symbol name.
enum Runtime : uint8_t {
    any_runtime = 0,
    cudart11 = 1,
    cudart12 = 2,
    cudart13 = 4,
    hip52 = 8, // up to 5.2
    hip5 = 16, // from 5.3 on
    hip6 = 32, // 6 and 7
};

struct Probe {
    std::string symbol;
    Library library = Library::driver;
    uint8_t runtimes = any_runtime; // bits of Runtime
    probe_row row{};
};

// By LAYER_x of its calls: every library but NCCL, whose are not told apart from the driver's.
Library library_of(uint8_t layer);

// All rows of these kinds in one library, each variant (_ptsz) a row of its own.
std::vector<Probe> probes(Library library, std::span<const probe_kind> kinds);

// The functions that wait, of these layers, at the numbers of their rows less one; others have no name there.
std::vector<std::string_view> symbols_of_waits(std::span<const Probe> probes, bool driver, bool runtime);

// Major version behind a soname as a bit of Runtime: "libcudart.so.12" -> cudart12, "libamdhip64.so.7" -> hip6.
// any_runtime where it has none: the static runtime does not tell its version, so only rows that hold for all versions
// apply to it.
Runtime runtime_of(std::string_view soname);
bool applies(const Probe& probe, Runtime runtime);

// "CUDA_ERROR_INVALID_VALUE" for a CUresult, "cudaErrorInvalidValue" for a cudaError_t, "ncclInvalidArgument" for a
// ncclResult_t, "hipErrorInvalidValue" for a hipError_t, "error N" when unknown.
std::string result_name(Library library, int result);

} // namespace gpusnoop
