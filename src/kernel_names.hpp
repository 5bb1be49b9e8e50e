// SPDX-License-Identifier: Apache-2.0
// Launch handle -> kernel name. A handle is a CUfunction, a CUkernel, a runtime kernel handle, or the address of a host
// stub; what each stands for is learned from the calls that made it and from the symbols of the file around it.
#pragma once

#include "../bpf/names.h"
#include "elf.hpp"
#include "process.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace gpusnoop {

// One program image of one process (bpf/process.h), ordered for maps.
struct ImageId {
    uint32_t pid = 0;
    uint32_t serial = 0;
    ImageId(const ::image& image) : pid(image.pid), serial(image.serial) {} // NOLINT: a value from the kernel side
    operator ::image() const { return {pid, serial}; }                      // NOLINT
    auto operator<=>(const ImageId&) const = default;
};

class KernelNames {
public:
    // A record from the ring, with its name behind it (size: of both).
    void learn(const name_record& record, size_t size);

    // Demangled; nullopt while unknown. Looks at the process' symbols if nothing else is known, which works while it
    // lives, so ask early.
    std::optional<std::string> name(const ImageId& image, uint64_t handle);

    void forget(const ImageId& image);

private:
    struct Known {
        std::string name;   // demangled; empty where only the alias is known
        uint64_t alias = 0; // another handle of the same kernel
    };

    struct Process {
        std::unordered_map<uint64_t, Known> handles;
        std::vector<Mapping> mappings;
        std::unordered_map<uint64_t, unsigned> failures; // lookups of an address that found nothing
    };

    std::string resolve(const ImageId& image, Process& process, uint64_t handle, int depth);
    std::string symbol(const ImageId& image, Process& process, uint64_t address);
    const Elf* file_of(const ImageId& image, const Mapping& mapping);

    std::map<ImageId, Process> processes_;
    std::map<std::pair<uint64_t, uint64_t>, std::unique_ptr<Elf>> files_; // by device and inode; null: unusable
};

} // namespace gpusnoop
