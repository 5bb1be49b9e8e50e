// SPDX-License-Identifier: Apache-2.0
// Launch handle -> kernel name. A handle is a CUfunction, a CUkernel, a runtime kernel handle, or the address of a host
// stub; what each stands for is learned from the calls that made it, from the file around it, and from the process'
// memory. Names of one handle never change; that it has none may.
#pragma once

#include "bpf/shared/names.h"
#include "names/name_source.hpp"
#include "proc/image.hpp"
#include "proc/process.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace gpusnoop {

class DriverObjects;
class KernelFiles;

class KernelNames {
public:
    // cache_folder: where what scans of files have found is kept; empty: nowhere (scan_cache.hpp).
    explicit KernelNames(const std::string& cache_folder);
    ~KernelNames();

    // A record from the ring, with its name behind it (size: of both).
    void learn(const name_record& record, size_t size);

    // nullopt while unknown. Looks at the process' symbols and memory if nothing else is known, which works while it
    // lives, so ask early.
    std::optional<KernelName> name(const ImageId& image, uint64_t handle);

    // A process that was asked for: its files are scanned before it launches something unknown.
    void expect(pid_t pid);

    // Once a second: scans of the files of processes that have launched something unknown go on, elsewhere.
    void tick();

    void forget(const ImageId& image);

private:
    struct Known {
        KernelName name;         // empty where only the alias is known
        uint64_t alias = 0;      // another handle of the same kernel
        bool correlated = false; // that is what the alias is from
    };

    struct Process {
        std::unordered_map<uint64_t, Known> handles;
        std::vector<Mapping> mappings;
        std::unordered_map<uint64_t, unsigned> failures; // lookups of a handle that found nothing
        std::unordered_map<uint64_t, uint64_t> kept;     // runtime handle -> host stub, from variables of the program
        std::optional<std::chrono::steady_clock::time_point> kept_read;
    };

    bool take_in();
    KernelName resolve(const ImageId& image, Process& process, uint64_t handle, int depth);
    KernelName search(const ImageId& image, Process& process, uint64_t handle);
    KernelName at_address(const ImageId& image, Process& process, uint64_t address);
    KernelName of_variable(const ImageId& image, Process& process, uint64_t handle);
    KernelName of_object(const ImageId& image, Process& process, uint64_t handle);
    void read_variables(const ImageId& image, Process& process);
    const Mapping* mapping_of(const ImageId& image, Process& process, uint64_t address);
    std::string driver_of(const ImageId& image, Process& process);

    std::map<ImageId, Process> processes_;
    std::set<ImageId> puzzling_; // have launched what has no name
    std::unique_ptr<KernelFiles> files_;
    std::unique_ptr<DriverObjects> objects_;
    uint64_t offsets_known_ = 0; // by objects_, when failures were last forgotten
};

} // namespace gpusnoop
