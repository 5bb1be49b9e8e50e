// SPDX-License-Identifier: Apache-2.0
#include "code/process_image.hpp"

#include "base/error.hpp"
#include "code/elf_image.hpp"
#include "proc/mapped_file.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr size_t modules_max = 256; // maximum modules open at once
constexpr size_t pages_max = 4096;

} // namespace

// Copies the vdso of this process into a file. In memory, a vdso is a complete ELF file.
Modules::Modules()
{
    const auto start = getauxval(AT_SYSINFO_EHDR);
    const auto all = code_mappings(getpid());
    const auto mapped = std::ranges::find_if(all, &Mapping::vdso);
    Fd file(memfd_create("vdso", MFD_CLOEXEC));
    if (!start || mapped == all.end() || !file)
        return;
    const auto size = static_cast<size_t>(mapped->end - mapped->start);
    if (pwrite(file.get(), reinterpret_cast<const void*>(start), size, 0) != static_cast<ssize_t>(size))
        return;
    try {
        vdso_ = std::make_shared<const Module>(std::move(file));
    } catch (const Error&) { // vdso_ stays null, so unwinding ends at code of the vdso
    }
}

std::shared_ptr<const Module> Modules::of(pid_t pid, const Mapping& mapping)
{
    if (mapping.vdso)
        return vdso_;
    const std::pair key(mapping.device, mapping.inode);
    if (const auto known = known_.find(key); known != known_.end())
        return known->second;
    std::shared_ptr<const Module> module;
    try {
        if (Fd file = open_mapped(pid, mapping))
            module = std::make_shared<const Module>(std::move(file));
    } catch (const Error&) { // `module` stays null, so unwinding ends at code of this file
    }
    known_.emplace(key, module);
    return module;
}

bool Modules::full() const
{
    return known_.size() >= modules_max;
}

ProcessImage::ProcessImage(pid_t pid, Modules& modules) : pid_(pid), modules_(modules), mappings_(code_mappings(pid)) {}

const Mapping* ProcessImage::find(uint64_t address) const
{
    const auto next = std::ranges::upper_bound(mappings_, address, {}, &Mapping::start);
    if (next == mappings_.begin() || address >= std::prev(next)->end)
        return nullptr;
    return &*std::prev(next);
}

std::optional<ProcessImage::Code> ProcessImage::code_at(uint64_t address)
{
    const Mapping* const mapping = find(address);
    if (!mapping)
        return std::nullopt;
    Code code{.mapping = mapping, .module = modules_.of(pid_, *mapping)};
    if (!code.module)
        return code;
    if (const auto bias = load_bias(code.module->elf.segments(), *mapping, address))
        code.bias = *bias;
    else
        code.module.reset();
    return code;
}

void ProcessImage::use_copy(uint64_t address, std::string_view bytes)
{
    copy_address_ = address;
    copy_.resize(bytes.size() / sizeof(uint64_t));
    memcpy(copy_.data(), bytes.data(), copy_.size() * sizeof(uint64_t));
}

// Removes the signature of a return address (FEAT_PAuth). The signature occupies bits that user addresses do not use:
// bit 48 or 52 (depending on the kernel) to bit 54. The last executable mapping is near the vdso, so its end shows how
// many bits addresses use.
std::optional<uint64_t> ProcessImage::return_address(uint64_t stack, std::optional<uint64_t> found) const
{
    constexpr unsigned signed_below = 55;
    if (const auto replaced = replaced_returns_.find(stack); replaced != replaced_returns_.end())
        return replaced->second;
    if (!FrameRegisters::returns_signed || !found || *found >> signed_below || mappings_.empty())
        return found;
    return *found & (std::bit_ceil(mappings_.back().end) - 1);
}

std::optional<uint64_t> ProcessImage::word(uint64_t address)
{
    if (address % sizeof(uint64_t))
        return std::nullopt;
    if (copy_address_) {
        const uint64_t at = (address - *copy_address_) / sizeof(uint64_t);
        if (address >= *copy_address_ && at < copy_.size())
            return copy_[at];
        asked_beyond_ |= address >= *copy_address_;
        return std::nullopt;
    }
    const uint64_t start = address - address % page_size;
    if (pages_.size() >= pages_max)
        pages_.clear();
    auto [page, added] = pages_.try_emplace(start);
    if (added) {
        page->second.emplace();
        if (!read(start, page->second->data(), page_size))
            page->second.reset();
    }
    return page->second ? std::optional((*page->second)[address % page_size / sizeof(uint64_t)]) : std::nullopt;
}

} // namespace gpusnoop
