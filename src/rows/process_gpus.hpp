// SPDX-License-Identifier: Apache-2.0
// Which GPUs a process is on, and who says so: the one place that rows, rows by device, the bars of GPUs and the search
// for neighbours ask.
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
    nvml,    // its list of the processes with a context
    kfd,     // what AMD's driver says that they hold
    files,   // it holds one GPU's file open and no other's: CUDA opens those of all GPUs that it may use
    context, // current in its calls
};
std::string_view source_name(GpuSource source); // empty: none

struct OnGpus {
    GpuSource source = GpuSource::none;
    std::set<Gpu> gpus;
    std::set<Gpu> possible; // it holds the files of several, and may use each of them
};

class ProcessGpus {
public:
    using ReadFiles = std::function<std::optional<std::set<unsigned>>(pid_t)>;

    explicit ProcessGpus(
        const NvmlFigures& nvml, ReadFiles read = [](pid_t pid) { return open_gpu_files(pid); })
        : nvml_(nvml), read_(std::move(read))
    {}

    void note_call(const call_key& call);
    // What NVML says now; of those that it does not list, the files, at first and then every few seconds.
    void refresh(std::span<const ImageId> running, uint64_t now_ns);

    OnGpus of(const ImageId& image) const;
    // Of a row: all that its processes are on. Without a source where they do not have the same.
    OnGpus of(const std::set<ImageId>& images) const;
    // The machine's number where it can be but one, else CUDA's; none: not known.
    Gpu of_call(const call_key& call) const;

    void forget(const std::set<ImageId>& images);

private:
    struct Known {
        std::set<uint8_t> ordinals;
        std::set<unsigned> minors; // of its open files
        std::optional<uint64_t> read_ns;
        OnGpus on;
    };
    std::set<Gpu> listed(const ImageId& image) const;
    OnGpus decide(const Known& known, std::set<Gpu> listed) const;

    const NvmlFigures& nvml_;
    ReadFiles read_;
    std::map<unsigned, unsigned> indices_; // by minor number
    std::map<ImageId, Known> known_;
};

} // namespace gpusnoop
