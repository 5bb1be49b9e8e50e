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

constexpr size_t max_mangled_name = 4096;    // a mangled name longer than that is cut
constexpr size_t processes_max = 4096;       // then all are looked at anew
constexpr size_t handles_max = 100000;       // of one process: it may make up as many as it likes
constexpr size_t variables_piece = 64 << 10; // bytes of memory in which variables are read at once
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
        NameAnswer said = answer(*question, message->file);
        const KernelFiles::Wanted* const wanted = question->scanner_is_free ? files_.wanted() : nullptr;
        if (wanted)
            said.wanted = wanted->scan;
        if (!task.connection.send(message_of(said), wanted ? wanted->file.get() : -1))
            return;
    }
}

NameAnswer NameSearch::answer(const NameQuestion& question, const Fd& file)
{
    using enum NameQuestion::What;
    const ImageId& image = question.image;
    if (processes_.size() >= processes_max)
        processes_.clear();
    Found found;
    if (question.what == kernel)
        found = search(image, question.handle);
    else if (question.what == text)
        found = {read_string(pid_of(image), question.address, max_mangled_name).value_or(""), question.source};
    else if (question.what == name || question.what == driver)
        found = {question.name, question.source};
    else if (question.what == process)
        scan(image);
    else if (question.what == scanned)
        learned_ += files_.scanned({question.device, question.inode}, registrations_in(file).value_or(Registrations()));
    else if (question.what == second)
        files_.let_go();
    else
        processes_.erase(image);
    found.name.resize(std::min(found.name.size(), kernel_name_max));
    if (question.what == driver || (question.what == text && found.source == NameSource::lookup && !found.name.empty()))
        learn(image, question.handle, found.name);
    return {.image = image,
            .handle = question.handle,
            .name = demangle(found.name),
            .source = found.source,
            .of = std::hash<std::string>()(question.name),
            .learned = learned_ + objects_.offsets_known() + hip_objects_.trusted_libraries(),
            .wanted = {}};
}

NameSearch::Found NameSearch::search(const ImageId& image, uint64_t handle)
{
    Process& process = processes_[image];
    Found found = at_address(image, process, handle);
    if (found.name.empty())
        found = of_variable(image, process, handle);
    if (found.name.empty())
        found = of_object(image, process, handle);
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
    return files_.of(pid_of(image), mapping);
}

// The handle is a host stub: its file knows it by a symbol, or by how it is registered.
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

// The handle is what CUDA 13's __cudaGetKernel gave for a stub: the program keeps it in a variable of its own.
NameSearch::Found NameSearch::of_variable(const ImageId& image, Process& process, uint64_t handle)
{
    const auto now = std::chrono::steady_clock::now();
    if (!process.kept.contains(handle) && (!process.kept_read || now - *process.kept_read >= variables_interval)) {
        process.kept_read = now;
        read_variables(image, process);
    }
    const auto stub = process.kept.find(handle);
    if (stub == process.kept.end())
        return {};
    Found found = at_address(image, process, stub->second);
    found.source = found.name.empty() ? NameSource::none : NameSource::handle;
    return found;
}

void NameSearch::read_variables(const ImageId& image, Process& process)
{
    process.kept.clear();
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
            for (size_t i = first; i < last && process.kept.size() < handles_max; i++) {
                uint64_t value = 0;
                std::memcpy(&value, &memory[all[i].variable - start], sizeof(value));
                if (value && keeps_handle(file->image, all[i]))
                    process.kept.emplace(value, all[i].stub + *bias);
            }
        }
    }
}

// The handle is an object of the driver's own, or of HIP's.
NameSearch::Found NameSearch::of_object(const ImageId& image, Process& process, uint64_t handle)
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

// The first of its libraries that is called so; null where it has none.
KernelFile* NameSearch::library_of(const ImageId& image, Process& process, bool (*is_it)(std::string_view path))
{
    if (process.mappings.empty())
        process.mappings = mappings(pid_of(image));
    const auto library = std::ranges::find_if(
        process.mappings, [&](const Mapping& mapping) { return mapping.executable && is_it(mapping.path); });
    return library != process.mappings.end() ? open(image, *library) : nullptr;
}

// What tells one build of the driver from another; empty where the process has none.
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
