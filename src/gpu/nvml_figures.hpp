// SPDX-License-Identifier: Apache-2.0
// NVML's figures of devices and of processes, and the kernel's of AMD's, beside those that were counted: the processes
// of a row added up.
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

// What is asked, and how often at most: every answer costs ioctls of each device.
struct NvmlQuestions {
    bool devices = true; // their state and who uses them, too; else only what processes hold
    uint64_t interval_ns = 1'000'000'000;
};

class NvmlFigures {
public:
    // library: a path or soname instead of the usual one; "off": not to be asked. Throws Error where a library that was
    // named is none. From here on use is measured.
    explicit NvmlFigures(const std::string& library, const NvmlQuestions& questions = {});

    bool available() const { return reader_.has_value(); }
    const std::string& why() const { return why_; } // it is not available: a sentence; else empty

    // Asks everything again, unless it has been asked within the interval: then the answers stay what they are. While
    // it does not answer nothing is known, which is said. Says once of each device why it does not. A helper that has
    // died is replaced, at most once a second, and once a minute where it dies again and again. now_ns:
    // CLOCK_MONOTONIC.
    void refresh(uint64_t now_ns = clock_ns(CLOCK_MONOTONIC));

    const std::vector<NvmlDeviceState>& states() const { return states_; } // of all devices

    // That GPU instance has several compute instances.
    bool is_divided(unsigned device, uint32_t gpu_instance) const;

    const std::multimap<uint32_t, NvmlProcess>& processes() const { return processes_; } // by pid

    // Bytes of device memory, of one device or of all; nullopt where it knows of none of the processes, or not how
    // much.
    std::optional<uint64_t> memory_of(const std::set<ImageId>& images, std::optional<unsigned> device = {}) const;
    // Percent of one device, added up where all are asked for: of two it may be 200. nullopt where the driver took no
    // sample of any of the processes since it was asked before: idle, or it takes none (MIG, some GPUs).
    std::optional<double> sm_percent_of(const std::set<ImageId>& images, std::optional<unsigned> device = {}) const;
    // The same of the other figures of NvmlUse.
    std::optional<double> use_of(const std::set<ImageId>& images, std::optional<double> NvmlUse::*figure,
                                 std::optional<unsigned> device = {}) const;
    // Who tells what a process holds on a device: "nvml", or "kfd" of AMD's.
    std::string_view source_of(unsigned device) const;
    // The MIG instance that they all are on: "gi 7 ci 0"; nullopt: none, several or not told.
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
    bool started_ = false;     // the helper has said that NVML is there
    bool was_there_ = false;   // a helper has
    bool silent_ = false;      // it owes an answer
    bool lost_ = false;        // since the last question
    std::string_view warning_; // that holds now; empty: none
    uint64_t now_ns_ = 0;
    std::optional<NvmlAnswers> answers_;
    JoinedParts parts_;
    std::optional<Reader> reader_;
    NvmlQuestions questions_;
    uint64_t due_ns_ = 0;
    std::vector<NvmlDeviceState> states_;
    std::multimap<uint32_t, NvmlProcess> processes_; // by pid
    std::multimap<uint32_t, NvmlUse> use_;
    std::set<unsigned> complained_;
};

} // namespace gpusnoop
