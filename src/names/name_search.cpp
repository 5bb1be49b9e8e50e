// SPDX-License-Identifier: Apache-2.0
#include "names/name_search.hpp"

#include "code/elf_image.hpp"
#include "names/demangle.hpp"
#include "names/registration_scan.hpp"
#include "proc/cuda_libraries.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <set>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr size_t max_mangled_name = 4096;    // longer names are truncated
constexpr size_t processes_max = 4096;       // at this number, all processes are forgotten and read again
constexpr size_t handles_max = 100000;       // per process; limited because a process may invent any number of them
constexpr size_t variables_piece = 64 << 10; // maximum bytes per read of a process's handle variables (HandleVariable)
constexpr std::chrono::seconds variables_interval(1);

pid_t pid_of(const ImageId& image)
{
    return static_cast<pid_t>(image.pid);
}

} // namespace

void NameSearch::serve(Helper::Task& task)
{
    task_ = &task;
    while (const auto message = task.connection.receive()) {
        const auto question = read_message<NameQuestion>(message->bytes);
        if (!question)
            return;
        task.set_status("");
        NameAnswer reply = answer(*question, message->file);
        const KernelFiles::Wanted* const wanted = question->scanner_is_free ? files_.wanted() : nullptr;
        if (wanted)
            reply.wanted = wanted->scan;
        if (!task.connection.send(message_of(reply), wanted ? wanted->file.get() : -1))
            return;
    }
}

NameAnswer NameSearch::answer(const NameQuestion& question, const Fd& file)
{
    using enum NameQuestion::Kind;
    const ImageId& image = question.image;
    if (processes_.size() >= processes_max)
        processes_.clear();
    Found found;
    if (question.kind == kernel)
        found = search(image, question.handle);
    else if (question.kind == text)
        found = {read_string(pid_of(image), question.address, max_mangled_name).value_or(""), question.source};
    else if (question.kind == name || question.kind == driver)
        found = {question.name, question.source};
    else if (question.kind == process)
        scan(image);
    else if (question.kind == scanned)
        learned_ += files_.scanned({question.device, question.inode}, registrations_in(file).value_or(Registrations()));
    else if (question.kind == tick)
        files_.close_unused();
    else
        processes_.erase(image);
    found.name.resize(std::min(found.name.size(), kernel_name_max));
    if (question.kind == driver || (question.kind == text && found.source == NameSource::lookup && !found.name.empty()))
        learn(image, question.handle, found.name);
    return {.image = image,
            .handle = question.handle,
            .name = demangle(found.name),
            .source = found.source,
            .name_hash = std::hash<std::string>()(question.name),
            .learned = learned_ + objects_.offsets_known() + hip_objects_.trusted_libraries(),
            .wanted = {}};
}

NameSearch::Found NameSearch::search(const ImageId& image, uint64_t handle)
{
    Process& process = processes_[image];
    Found found = at_address(image, process, handle);
    if (found.name.empty())
        found = by_variable(image, process, handle);
    if (found.name.empty())
        found = by_object(image, process, handle);
    return found;
}

const Mapping* NameSearch::mapping_of(const ImageId& image, Process& process, uint64_t address)
{
    auto contains = [address](const Mapping& m) { return m.inode && address >= m.start && address < m.end; };
    auto mapping = std::ranges::find_if(process.mappings, contains);
    if (mapping == process.mappings.end()) {
        if (auto now = mappings(pid_of(image)); !now.empty())
            process.mappings = std::move(now);
        mapping = std::ranges::find_if(process.mappings, contains);
    }
    return mapping != process.mappings.end() ? &*mapping : nullptr;
}

KernelFile* NameSearch::open(const ImageId& image, const Mapping& mapping)
{
    task_->set_status(mapping.path);
    return files_.open(pid_of(image), mapping);
}

// Finds the name of a handle that is a host stub, from a symbol or registration in the stub's file.
NameSearch::Found NameSearch::at_address(const ImageId& image, Process& process, uint64_t address)
{
    const Mapping* const mapping = mapping_of(image, process, address);
    const KernelFile* const file = mapping ? open(image, *mapping) : nullptr;
    const auto bias = file ? load_bias(file->elf.segments(), *mapping, address) : std::nullopt;
    if (!bias)
        return {};
    if (const auto symbol = file->elf.symbol_at(address - *bias))
        return {std::string(symbol->name), NameSource::symbol};
    if (std::string name = file->registered(address - *bias); !name.empty())
        return {std::move(name), NameSource::registration};
    return {};
}

// Finds the name of a handle that CUDA 13's __cudaGetKernel() has returned. The program stores such handles in one
// variable per stub.
NameSearch::Found NameSearch::by_variable(const ImageId& image, Process& process, uint64_t handle)
{
    const auto now = std::chrono::steady_clock::now();
    if (!process.stubs.contains(handle) && (!process.stubs_read || now - *process.stubs_read >= variables_interval)) {
        process.stubs_read = now;
        read_variables(image, process);
    }
    const auto stub = process.stubs.find(handle);
    if (stub == process.stubs.end())
        return {};
    Found found = at_address(image, process, stub->second);
    found.source = found.name.empty() ? NameSource::none : NameSource::handle;
    return found;
}

void NameSearch::read_variables(const ImageId& image, Process& process)
{
    process.stubs.clear();
    std::set<const KernelFile*> seen;
    std::vector<uint8_t> memory;
    for (const Mapping& mapping : process.mappings) {
        const KernelFile* const file = mapping.executable && mapping.inode ? files_.known(mapping) : nullptr;
        if (!file || !seen.insert(file).second)
            continue;
        const auto bias = load_bias(file->elf.segments(), mapping, mapping.start);
        const std::vector<HandleVariable>& all = file->registrations.handles;
        for (size_t first = 0, last = 0; bias && first < all.size(); first = last) {
            const uint64_t start = all[first].variable;
            for (last = first; last < all.size() && all[last].variable - start < variables_piece; last++)
                ;
            memory.resize(all[last - 1].variable - start + sizeof(uint64_t));
            if (!read_memory(pid_of(image), start + *bias, memory.data(), memory.size()))
                continue;
            for (size_t i = first; i < last && process.stubs.size() < handles_max; i++) {
                uint64_t value = 0;
                std::memcpy(&value, &memory[all[i].variable - start], sizeof(value));
                if (value && keeps_handle(file->image, all[i]))
                    process.stubs.emplace(value, all[i].stub + *bias);
            }
        }
    }
}

// Finds the name of a handle that points to one of the driver's or HIP's own objects.
NameSearch::Found NameSearch::by_object(const ImageId& image, Process& process, uint64_t handle)
{
    const auto is_kernel = [&](const std::string& name) {
        const size_t hash = std::hash<std::string>()(name);
        return std::ranges::any_of(process.mappings, [&](const Mapping& m) {
            const KernelFile* const file = m.executable && m.inode ? files_.known(m) : nullptr;
            return file && file->names().contains(hash);
        });
    };
    auto name = objects_.name(pid_of(image), driver_of(image, process), handle, is_kernel);
    if (const auto hip = name ? std::nullopt : hip_of(image, process))
        name = hip_objects_.name(pid_of(image), *hip, handle);
    return name ? Found{std::move(*name), NameSource::object} : Found{};
}

void NameSearch::learn(const ImageId& image, uint64_t handle, const std::string& name)
{
    Process& process = processes_[image];
    objects_.learn(pid_of(image), driver_of(image, process), handle, name);
    if (const auto hip = hip_of(image, process))
        hip_objects_.learn(pid_of(image), *hip, handle, name);
}

// Returns the process's first library whose path matches, or null if there is none.
KernelFile* NameSearch::library_of(const ImageId& image, Process& process, bool (*matches)(std::string_view path))
{
    if (process.mappings.empty())
        process.mappings = mappings(pid_of(image));
    const auto library = std::ranges::find_if(
        process.mappings, [&](const Mapping& mapping) { return mapping.executable && matches(mapping.path); });
    return library != process.mappings.end() ? open(image, *library) : nullptr;
}

// Returns the build-id of the driver library that the process maps, or an empty string.
std::string NameSearch::driver_of(const ImageId& image, Process& process)
{
    const KernelFile* const file = library_of(image, process, is_driver);
    return file ? file->build_id : "";
}

std::optional<HipObjects::Library> NameSearch::hip_of(const ImageId& image, Process& process)
{
    const KernelFile* const file = library_of(image, process, is_hip);
    return file ? std::optional(HipObjects::Library{file->elf, file->build_id}) : std::nullopt;
}

void NameSearch::scan(const ImageId& image)
{
    std::vector<Mapping> now = mappings(pid_of(image));
    files_.scan(pid_of(image), now, [this](const Mapping& mapping) { task_->set_status(mapping.path); });
    if (const auto known = processes_.find(image); known != processes_.end() && !now.empty())
        known->second.mappings = std::move(now);
}

} // namespace gpusnoop
