// SPDX-License-Identifier: Apache-2.0
#include "kernel_names.hpp"

#include "error.hpp"
#include "targets.hpp"
#include "text.hpp"

#include <algorithm>
#include <cstring>

namespace gpusnoop {
namespace {

constexpr size_t name_max = 4096;      // a mangled name longer than that is cut
constexpr size_t handles_max = 100000; // of one process: it may make up as many as it likes
constexpr size_t files_max = 256;
constexpr unsigned failures_max = 3; // then an address has no name; the mappings were read anew each time

std::string name_of(const name_record& record, size_t size)
{
    const char* text = reinterpret_cast<const char*>(&record + 1);
    size_t there = size > sizeof(record) ? size - sizeof(record) : 0;
    if (record.length > 0)
        return {text, strnlen(text, std::min<size_t>(there, static_cast<size_t>(record.length)))};
    // The page of the name was not in memory when the call was made; reading it from here brings it in.
    if (record.name_address)
        return read_string(static_cast<pid_t>(record.image.pid), record.name_address, name_max).value_or("");
    return {};
}

} // namespace

void KernelNames::learn(const name_record& record, size_t size)
{
    Process& process = processes_[record.image];
    if (process.handles.size() >= handles_max)
        return;
    if (record.alias) {
        if (record.alias == record.handle)
            return; // cudart 12 hands out the stub's own address
        process.handles[record.handle].alias = record.alias;
        // Not when somebody asks: the process may have gone by then.
        name(record.image, record.handle);
        return;
    }
    if (std::string text = name_of(record, size); !text.empty())
        process.handles[record.handle] = {demangle(text), 0};
}

std::optional<std::string> KernelNames::name(const ImageId& image, uint64_t handle)
{
    std::string found = resolve(image, processes_[image], handle, 0);
    return found.empty() ? std::nullopt : std::optional(std::move(found));
}

std::string KernelNames::resolve(const ImageId& image, Process& process, uint64_t handle, int depth)
{
    // CUfunction -> CUkernel -> runtime handle -> host stub is the longest honest chain.
    if (depth > 4)
        return {};
    auto known = process.handles.find(handle);
    if (known != process.handles.end() && !known->second.name.empty())
        return known->second.name;
    std::string found;
    if (known != process.handles.end() && known->second.alias)
        found = resolve(image, process, known->second.alias, depth + 1);
    if (found.empty())
        found = symbol(image, process, handle);
    if (!found.empty() && process.handles.size() < handles_max)
        process.handles[handle].name = found;
    return found;
}

std::string KernelNames::symbol(const ImageId& image, Process& process, uint64_t address)
{
    if (!address)
        return {};
    unsigned& failures = process.failures[address];
    if (failures >= failures_max)
        return {};
    auto contains = [address](const Mapping& m) { return m.inode && address >= m.start && address < m.end; };
    auto mapping = std::ranges::find_if(process.mappings, contains);
    if (mapping == process.mappings.end()) {
        if (auto now = mappings(static_cast<pid_t>(image.pid)); !now.empty())
            process.mappings = std::move(now);
        mapping = std::ranges::find_if(process.mappings, contains);
    }
    if (mapping != process.mappings.end()) {
        if (const Elf* file = file_of(image, *mapping)) {
            auto in_file = file->address_of(mapping->file_offset + (address - mapping->start));
            if (auto found = in_file ? file->symbol_at(*in_file) : std::nullopt)
                return demangle(found->name);
        }
    }
    if (process.failures.size() > handles_max)
        process.failures.clear();
    else
        failures++;
    return {};
}

const Elf* KernelNames::file_of(const ImageId& image, const Mapping& mapping)
{
    const std::pair key(mapping.device, mapping.inode);
    if (auto known = files_.find(key); known != files_.end())
        return known->second.get();
    Fd file = open_mapped(static_cast<pid_t>(image.pid), mapping);
    if (!file)
        return nullptr;
    if (files_.size() >= files_max)
        files_.clear();
    std::unique_ptr<Elf> elf;
    try {
        elf = std::make_unique<Elf>(std::move(file));
    } catch (const Error&) {
        elf = nullptr; // not an ELF file: device memory, a font; no symbols either way
    }
    return (files_[key] = std::move(elf)).get();
}

void KernelNames::forget(const ImageId& image)
{
    processes_.erase(image);
}

} // namespace gpusnoop
