// SPDX-License-Identifier: Apache-2.0
#include "code/load_bias.hpp"

#include "base/machine.hpp"

namespace gpusnoop {
namespace {

// How well a segment explains a mapping, most telling first.
struct Fit {
    // The segment's pages include all of the mapping's. mprotect() may have split the mapping, but not extended it.
    bool covers = false;
    // Not first: READ_IMPLIES_EXEC makes read-only segments executable, and mprotect() changes permissions, too.
    bool same_permission = false;
    // The segment's bytes include the address. Decides between two segments of one permission that share a page.
    bool contains = false;
    auto operator<=>(const Fit&) const = default;
};

} // namespace

std::optional<uint64_t> load_bias(std::span<const Elf64_Phdr> segments, const MappedRange& mapping, uint64_t address)
{
    const uint64_t page = machine::page_size();
    const uint64_t offset = mapping.file_offset + (address - mapping.start);
    const uint64_t mapping_end = mapping.file_offset + (mapping.end - mapping.start);
    std::optional<uint64_t> bias;
    Fit best;
    for (const Elf64_Phdr& s : segments) {
        const uint64_t bytes_end = s.p_offset + s.p_filesz;
        if (s.p_type != PT_LOAD || bytes_end <= s.p_offset || bytes_end > UINT64_MAX - page)
            continue;
        const uint64_t first_page = s.p_offset / page * page, pages_end = (bytes_end + page - 1) / page * page;
        if (offset < first_page || offset >= pages_end)
            continue;
        const Fit fit{.covers = mapping.file_offset >= first_page && mapping_end <= pages_end,
                      .same_permission = ((s.p_flags & PF_X) != 0) == mapping.executable,
                      .contains = offset >= s.p_offset && offset < bytes_end};
        if (!bias || fit > best) {
            best = fit;
            bias = address - (s.p_vaddr + (offset - s.p_offset));
        }
    }
    return bias;
}

} // namespace gpusnoop
