// SPDX-License-Identifier: Apache-2.0
// Load bias of a mapped file: what is added to an address in the file's own numbering to get the process's address.
#pragma once

#include <cstdint>
#include <elf.h>
#include <optional>
#include <span>

namespace gpusnoop {

// A mapping of a file, as /proc/PID/maps shows it.
struct MappedRange {
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t file_offset = 0;
    bool executable = false;
};

// Load bias of the segment that the mapping shows at `address`, which lies within it. nullopt where no PT_LOAD segment
// has the page. The file offset alone does not identify the segment: lld and mold do not pad the file, so a page may
// hold the end of one segment and the start of the next, at different biases, and is mapped once for each.
std::optional<uint64_t> load_bias(std::span<const Elf64_Phdr> segments, const MappedRange& mapping, uint64_t address);

// The same of a Mapping (proc/process.hpp).
template<class Mapping>
std::optional<uint64_t> load_bias(std::span<const Elf64_Phdr> segments, const Mapping& m, uint64_t address)
{
    return load_bias(segments, MappedRange{m.start, m.end, m.file_offset, m.executable}, address);
}

} // namespace gpusnoop
