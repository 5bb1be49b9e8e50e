// SPDX-License-Identifier: Apache-2.0
// Memory and utilization of GPUs, per device and per process. The values come from NVML or, for AMD, from the kernel.
// Per-process values can be summed over several processes.
#pragma once

#include "base/clock.hpp"
#include "gpu/nvml_service.hpp"
#include "reader/message.hpp"
#include "reader/reader.hpp"
#include "who/processes.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// Selection and maximum rate of queries. Each query costs several ioctls per device.
struct NvmlQuestions {
    bool devices = true; // also query device state and per-process use; false: only the memory of processes
    uint64_t interval_ns = 1'000'000'000;
};

class NvmlFigures {
public:
    // library: a path or soname, "off" to disable NVML, or empty for the default. Throws Error if a named library
    // cannot be used. The constructor also starts to measure the use of devices.
    explicit NvmlFigures(const std::string& library, const NvmlQuestions& questions = {});

    bool available() const { return reader_.has_value(); }
    const std::string& why() const { return why_; } // explains why NVML is not available; empty if it is available

    // Repeats all queries, at most once per interval. While NVML does not respond, all values are unknown, and a
    // warning is shown. Warns once about each device that fails. Helpers are started at least one second apart, or one
    // minute apart once three in a row have died. now_ns: CLOCK_MONOTONIC.
    void refresh(uint64_t now_ns = clock_ns(CLOCK_MONOTONIC));

    const std::vector<NvmlDeviceState>& states() const { return states_; } // one per device

    // True if the GPU instance has several compute instances.
    bool is_divided(unsigned device, uint32_t gpu_instance) const;

    const std::multimap<uint32_t, NvmlProcess>& processes() const { return processes_; } // by pid

    // Returns the bytes of device memory that the processes use, on one device or on all. nullopt if NVML reports none
    // of the processes, or one of them without a size.
    std::optional<uint64_t> memory_of(const std::set<ImageId>& images, std::optional<unsigned> device = {}) const;
    // Returns the SM utilization by the processes in percent: on one device, or summed over all devices, which may
    // exceed 100. nullopt if the driver has not sampled the processes since the last query: they are idle, or the
    // driver takes no samples (MIG, some GPUs).
    std::optional<double> sm_percent_of(const std::set<ImageId>& images, std::optional<unsigned> device = {}) const;
    // Like sm_percent_of(), but for any field of NvmlUse.
    std::optional<double> use_of(const std::set<ImageId>& images, std::optional<double> NvmlUse::*figure,
                                 std::optional<unsigned> device = {}) const;
    // Returns the source of the per-process values for a device: "nvml", or "kfd" for AMD.
    std::string_view source_of(unsigned device) const;
    // Returns the MIG instance that all of the processes use, such as "gi 7 ci 0"; nullopt if they use none or several,
    // or if it is unknown.
    std::optional<std::string> instance_of(const std::set<ImageId>& images) const;

private:
    void start();
    void on_loss(const Reader::Loss& loss);
    std::optional<NvmlAnswers> ask(std::chrono::milliseconds patience);
    std::optional<NvmlAnswers> ask_for_figures();
    void set_warning(std::string_view message);
    void apply(NvmlAnswers answers);

    NvmlPlaces places_;
    std::string why_;
    bool started_ = false;       // the current helper has sent its first reply
    bool was_available_ = false; // a helper has reported that NVML is available
    bool is_late_ = false;       // a reply is overdue
    bool lost_ = false;          // a helper died, hung or sent invalid data during the last query
    std::string_view warning_;   // the warning that is shown now; empty: none
    uint64_t now_ns_ = 0;
    std::optional<NvmlAnswers> answers_;
    JoinedParts parts_;
    std::optional<Reader> reader_;
    NvmlQuestions questions_;
    uint64_t due_ns_ = 0;
    std::vector<NvmlDeviceState> states_;
    std::multimap<uint32_t, NvmlProcess> processes_; // by pid
    std::multimap<uint32_t, NvmlUse> use_;
    std::set<unsigned> warned_devices_;
};

} // namespace gpusnoop
