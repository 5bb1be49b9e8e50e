// SPDX-License-Identifier: Apache-2.0
#include "names/kernel_names.hpp"

#include "names/driver_objects.hpp"
#include "names/kernel_files.hpp"
#include "names/kernel_text.hpp"
#include "names/registration_scan.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <functional>

namespace gpusnoop {
namespace {

constexpr size_t name_max = 4096;            // a mangled name longer than that is cut
constexpr size_t handles_max = 100000;       // of one process: it may make up as many as it likes
constexpr unsigned failures_max = 3;         // then a handle has no name, until more is known of the files
constexpr size_t variables_piece = 64 << 10; // bytes of memory in which variables are read at once
constexpr std::chrono::seconds variables_interval(1);

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

bool is_driver(const Mapping& mapping)
{
    return mapping.executable && mapping.path.substr(mapping.path.rfind('/') + 1).starts_with("libcuda.so");
}

// What is added to addresses of the file where this mapping is.
std::optional<uint64_t> bias_of(const KernelFile& file, const Mapping& mapping)
{
    const auto address = file.elf.address_of(mapping.file_offset);
    return address ? std::optional(mapping.start - *address) : std::nullopt;
}

} // namespace

KernelNames::KernelNames(const std::string& cache_folder)
    : files_(std::make_unique<KernelFiles>(cache_folder)), objects_(std::make_unique<DriverObjects>())
{}

KernelNames::~KernelNames() = default;

void KernelNames::learn(const name_record& record, size_t size)
{
    Process& process = processes_[record.image];
    if (process.handles.size() >= handles_max)
        return;
    if (record.alias) {
        if (record.alias == record.handle)
            return; // cudart 12 hands out the stub's own address
        Known& known = process.handles[record.handle];
        known.alias = record.alias;
        known.correlated = record.source == NAME_CORRELATED;
        // Not when somebody asks: the process may have gone by then.
        name(record.image, record.handle);
        return;
    }
    const std::string text = name_of(record, size);
    if (text.empty())
        return;
    const bool lookup = record.source == NAME_LOOKUP;
    process.handles[record.handle] = {
        {demangle(text), lookup ? NameSource::lookup : NameSource::registration}, 0, false};
    if (lookup)
        objects_->learn(static_cast<pid_t>(record.image.pid), driver_of(record.image, process), record.handle, text);
}

std::optional<KernelName> KernelNames::name(const ImageId& image, uint64_t handle)
{
    KernelName found = resolve(image, processes_[image], handle, 0);
    if (found.text.empty() && take_in())
        found = resolve(image, processes_[image], handle, 0);
    return found.text.empty() ? std::nullopt : std::optional(std::move(found));
}

KernelName KernelNames::resolve(const ImageId& image, Process& process, uint64_t handle, int depth)
{
    // CUfunction -> CUkernel -> runtime handle -> host stub is the longest honest chain.
    if (depth > 4)
        return {};
    auto known = process.handles.find(handle);
    if (known != process.handles.end() && !known->second.name.text.empty())
        return known->second.name;
    KernelName found;
    if (known != process.handles.end() && known->second.alias) {
        const bool correlated = known->second.correlated;
        found = resolve(image, process, known->second.alias, depth + 1);
        if (correlated)
            found.source = std::max(found.source, NameSource::correlation);
    }
    if (found.text.empty())
        found = search(image, process, handle);
    if (!found.text.empty() && process.handles.size() < handles_max)
        process.handles[handle].name = found;
    return found;
}

KernelName KernelNames::search(const ImageId& image, Process& process, uint64_t handle)
{
    if (!handle)
        return {};
    unsigned& failures = process.failures[handle];
    if (failures >= failures_max)
        return {};
    KernelName found = at_address(image, process, handle);
    if (found.text.empty())
        found = of_variable(image, process, handle);
    if (found.text.empty())
        found = of_object(image, process, handle);
    if (!found.text.empty())
        return found;
    puzzling_.insert(image);
    if (process.failures.size() > handles_max)
        process.failures.clear();
    else
        failures++;
    return {};
}

const Mapping* KernelNames::mapping_of(const ImageId& image, Process& process, uint64_t address)
{
    auto contains = [address](const Mapping& m) { return m.inode && address >= m.start && address < m.end; };
    auto mapping = std::ranges::find_if(process.mappings, contains);
    if (mapping == process.mappings.end()) {
        if (auto now = mappings(static_cast<pid_t>(image.pid)); !now.empty())
            process.mappings = std::move(now);
        mapping = std::ranges::find_if(process.mappings, contains);
    }
    return mapping != process.mappings.end() ? &*mapping : nullptr;
}

// The handle is a host stub: its file knows it by a symbol, or by how it is registered.
KernelName KernelNames::at_address(const ImageId& image, Process& process, uint64_t address)
{
    const Mapping* const mapping = mapping_of(image, process, address);
    const KernelFile* const file = mapping ? files_->of(static_cast<pid_t>(image.pid), *mapping) : nullptr;
    const auto in_file = file ? file->elf.address_of(mapping->file_offset + (address - mapping->start)) : std::nullopt;
    if (!in_file)
        return {};
    if (const auto symbol = file->elf.symbol_at(*in_file))
        return {demangle(symbol->name), NameSource::symbol};
    if (const std::string name = file->registered(*in_file); !name.empty())
        return {demangle(name), NameSource::registration};
    return {};
}

// The handle is what CUDA 13's __cudaGetKernel gave for a stub: the program keeps it in a variable of its own.
KernelName KernelNames::of_variable(const ImageId& image, Process& process, uint64_t handle)
{
    const auto now = std::chrono::steady_clock::now();
    if (!process.kept.contains(handle) && (!process.kept_read || now - *process.kept_read >= variables_interval)) {
        process.kept_read = now;
        read_variables(image, process);
    }
    const auto stub = process.kept.find(handle);
    if (stub == process.kept.end())
        return {};
    KernelName found = at_address(image, process, stub->second);
    found.source = found.text.empty() ? NameSource::none : NameSource::handle;
    return found;
}

void KernelNames::read_variables(const ImageId& image, Process& process)
{
    const auto pid = static_cast<pid_t>(image.pid);
    process.kept.clear();
    std::set<const KernelFile*> seen;
    std::vector<uint8_t> memory;
    for (const Mapping& mapping : process.mappings) {
        const KernelFile* const file = mapping.executable && mapping.inode ? files_->known(mapping) : nullptr;
        if (!file || !seen.insert(file).second)
            continue;
        const auto bias = bias_of(*file, mapping);
        const std::vector<HandleVariable>& all = file->registrations.handles;
        for (size_t first = 0, last = 0; bias && first < all.size(); first = last) {
            const uint64_t start = all[first].variable;
            for (last = first; last < all.size() && all[last].variable - start < variables_piece; last++)
                ;
            memory.resize(all[last - 1].variable - start + sizeof(uint64_t));
            if (!read_memory(pid, start + *bias, memory.data(), memory.size()))
                continue;
            for (size_t i = first; i < last && process.kept.size() < handles_max; i++) {
                uint64_t value = 0;
                std::memcpy(&value, &memory[all[i].variable - start], sizeof(value));
                if (value && keeps_handle(file->image, all[i]))
                    process.kept.emplace(value, all[i].stub + *bias);
            }
        }
    }
}

// The handle is the driver's own object.
KernelName KernelNames::of_object(const ImageId& image, Process& process, uint64_t handle)
{
    const auto is_kernel = [&](const std::string& name) {
        const size_t hash = std::hash<std::string>()(name);
        return std::ranges::any_of(process.mappings, [&](const Mapping& m) {
            const KernelFile* const file = m.executable && m.inode ? files_->known(m) : nullptr;
            return file && file->names().contains(hash);
        });
    };
    const auto name = objects_->name(static_cast<pid_t>(image.pid), driver_of(image, process), handle, is_kernel);
    return name ? KernelName{demangle(*name), NameSource::object} : KernelName{};
}

// What tells one build of the driver from another; empty where the process has none.
std::string KernelNames::driver_of(const ImageId& image, Process& process)
{
    const auto pid = static_cast<pid_t>(image.pid);
    if (process.mappings.empty())
        process.mappings = mappings(pid);
    const auto driver = std::ranges::find_if(process.mappings, is_driver);
    const KernelFile* const file = driver != process.mappings.end() ? files_->of(pid, *driver) : nullptr;
    return file ? file->build_id : "";
}

void KernelNames::expect(pid_t pid)
{
    files_->scan(pid, mappings(pid));
    take_in(); // the first one begins
}

void KernelNames::tick()
{
    for (const ImageId& image : puzzling_) {
        const auto process = processes_.find(image);
        if (process == processes_.end())
            continue;
        const auto pid = static_cast<pid_t>(image.pid);
        if (auto now = mappings(pid); !now.empty())
            process->second.mappings = std::move(now);
        files_->scan(pid, process->second.mappings);
    }
    puzzling_.clear();
    files_->let_go();
    take_in();
}

// True where scans or the driver's objects have taught something: what had no name may have one now.
bool KernelNames::take_in()
{
    const bool found = files_->advance();
    if (!found && offsets_known_ == objects_->offsets_known())
        return false;
    offsets_known_ = objects_->offsets_known();
    for (auto& [image, process] : processes_) {
        process.failures.clear();
        process.kept_read.reset();
    }
    return true;
}

void KernelNames::forget(const ImageId& image)
{
    processes_.erase(image);
    puzzling_.erase(image);
}

} // namespace gpusnoop
