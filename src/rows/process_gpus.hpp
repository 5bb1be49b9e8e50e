// SPDX-License-Identifier: Apache-2.0
// The GPUs that each process uses, and the source of that information. Used for rows, for grouping by device, for the
// GPU bars, and to find processes that share a GPU.
#pragma once

#include "bpf/shared/call.h"
#include "gpu/gpu.hpp"
#include "gpu/gpu_files.hpp"
#include "gpu/nvml_figures.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>

namespace gpusnoop {

enum class GpuSource : uint8_t {
    none,
    nvml,    // NVML lists the process as having a context on the GPU
    kfd,     // AMD's kernel driver lists the GPUs that the process uses
    files,   // the process has only one GPU's device file open; CUDA opens the files of all GPUs that it may use
    context, // the device that was current when the process made calls
};
std::string_view source_name(GpuSource source); // empty for GpuSource::none

struct OnGpus {
    GpuSource source = GpuSource::none;
    std::set<Gpu> gpus;
    std::set<Gpu> possible; // GPUs whose device files the process has open, and which it may therefore use
};

class ProcessGpus {
public:
    using ReadFiles = std::function<std::optional<std::set<unsigned>>(pid_t)>;

    explicit ProcessGpus(
        const NvmlFigures& nvml, ReadFiles read = [](pid_t pid) { return open_gpu_files(pid); })
        : nvml_(nvml), read_(std::move(read))
    {}

    void note_call(const call_key& call);
    // Reads NVML's list of processes. For running processes that are not in this list, also reads which device files
    // are open, at most once per 5 s and process.
    void refresh(std::span<const ImageId> running, uint64_t now_ns);

    OnGpus of(const ImageId& image) const;
    // Returns the GPUs used by any of these processes. The source is `none` if their sources differ.
    OnGpus of(const std::set<ImageId>& images) const;
    // Returns the GPU on which the call was made: the physical GPU if only one is possible, otherwise CUDA's device
    // number. If that is unknown too, returns an empty Gpu.
    Gpu of_call(const call_key& call) const;

    void forget(const std::set<ImageId>& images);

private:
    struct Known {
        std::set<uint8_t> ordinals;
        std::set<unsigned> minors; // minor numbers of the process's open device files
        std::optional<uint64_t> read_ns;
        OnGpus on;
    };
    std::set<Gpu> listed(const ImageId& image) const;
    OnGpus decide(const Known& known, std::set<Gpu> listed) const;

    const NvmlFigures& nvml_;
    ReadFiles read_;
    std::map<unsigned, unsigned> indices_; // GPU index by minor number
    std::map<ImageId, Known> known_;
};

} // namespace gpusnoop
