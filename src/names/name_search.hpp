// SPDX-License-Identifier: Apache-2.0
// Search for kernel names in a process's files and memory. The process controls both and may make the reader hang, run
// out of memory or misbehave, so the search runs in a sandboxed helper (reader/helper.hpp).
#pragma once

#include "names/driver_objects.hpp"
#include "names/kernel_files.hpp"
#include "names/name_messages.hpp"
#include "proc/mapped_file.hpp"
#include "proc/process.hpp"
#include "reader/helper.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpusnoop {

class NameSearch {
public:
    static constexpr uint64_t memory_bytes = 256 << 20; // memory limit of the sandbox

    // The helper's main loop: answers questions until the process that started it exits.
    void serve(Helper::Task& task);

private:
    struct Process {
        std::vector<Mapping> mappings;
        std::unordered_map<uint64_t, uint64_t> stubs; // runtime handle -> host stub, read from variables of the program
        std::optional<std::chrono::steady_clock::time_point> stubs_read; // time at which `stubs` was last read
    };

    struct Found {
        std::string name; // mangled
        NameSource source = NameSource::none;
    };

    NameAnswer answer(const NameQuestion& question, const Fd& file);
    Found search(const ImageId& image, uint64_t handle);
    Found at_address(const ImageId& image, Process& process, uint64_t address);
    Found by_variable(const ImageId& image, Process& process, uint64_t handle);
    Found by_object(const ImageId& image, Process& process, uint64_t handle);
    void learn(const ImageId& image, uint64_t handle, const std::string& name);
    void scan(const ImageId& image);
    void read_variables(const ImageId& image, Process& process);
    const Mapping* mapping_of(const ImageId& image, Process& process, uint64_t address);
    KernelFile* open(const ImageId& image, const Mapping& mapping);
    KernelFile* library_of(const ImageId& image, Process& process, bool (*matches)(std::string_view path));
    std::string driver_of(const ImageId& image, Process& process);
    std::optional<HipObjects::Library> hip_of(const ImageId& image, Process& process);

    std::map<ImageId, Process> processes_;
    KernelFiles files_;
    DriverObjects objects_;
    HipObjects hip_objects_;
    uint64_t learned_ = 0; // number of files in which scans have found kernels
    Helper::Task* task_ = nullptr;
};

} // namespace gpusnoop
