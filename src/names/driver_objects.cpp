// SPDX-License-Identifier: Apache-2.0
#include "names/driver_objects.hpp"

#include "base/machine.hpp"
#include "code/dispatch_tables.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

namespace gpusnoop {

namespace {

constexpr size_t max_object_name = 4096;
constexpr size_t names_needed = 2; // different names that must be found at an offset before it is trusted
constexpr size_t drivers_max = 64;

bool is_address(uint64_t word)
{
    return word >= 4096 && word < machine::addresses_end;
}

} // namespace

bool DriverObjects::Offset::trusted() const
{
    return names.size() >= names_needed;
}

uint64_t DriverObjects::offsets_known() const
{
    uint64_t count = 0;
    for (const auto& [driver, offsets] : drivers_)
        count += static_cast<uint64_t>(std::ranges::count_if(offsets, &Offset::trusted));
    return count;
}

std::optional<DriverObjects::Object> DriverObjects::read(pid_t pid, uint64_t handle)
{
    Object object{};
    if (!is_address(handle) || handle % sizeof(uint64_t) != 0 ||
        !read_memory(pid, handle, object.data(), sizeof(object)))
        return std::nullopt;
    return object;
}

void DriverObjects::learn(pid_t pid, const std::string& driver, uint64_t handle, std::string_view name)
{
    if (driver.empty() || name.empty() || (drivers_.size() >= drivers_max && !drivers_.contains(driver)))
        return;
    auto& offsets = drivers_[driver];
    // The offset for this driver build is already trusted.
    if (std::ranges::any_of(offsets, &Offset::trusted))
        return;
    const auto object = read(pid, handle);
    for (size_t i = 0; object && i < words; i++)
        if (is_address((*object)[i]) && read_string(pid, (*object)[i], name.size() + 1) == name)
            offsets[i].names.insert(std::hash<std::string_view>()(name));
}

std::optional<std::string> DriverObjects::name(pid_t pid, const std::string& driver, uint64_t handle,
                                               const IsKernel& is_kernel)
{
    if (driver.empty() || (drivers_.size() >= drivers_max && !drivers_.contains(driver)))
        return std::nullopt;
    const auto object = read(pid, handle);
    if (!object)
        return std::nullopt;
    auto& offsets = drivers_[driver];
    const bool sure = std::ranges::any_of(offsets, &Offset::trusted);
    for (size_t i = 0; i < words; i++) {
        if (!is_address((*object)[i]) || (sure && !offsets[i].trusted()))
            continue;
        const auto text = read_string(pid, (*object)[i], max_object_name);
        if (!text || text->empty() || text->size() >= max_object_name || !is_kernel(*text))
            continue;
        if (offsets[i].names.size() < names_needed)
            offsets[i].names.insert(std::hash<std::string_view>()(*text));
        if (offsets[i].trusted())
            return text;
    }
    return std::nullopt;
}

namespace {

constexpr size_t hip_name_max = 16 << 10;
constexpr size_t libraries_max = 64;
constexpr size_t function_max = 256; // bytes of hipKernelNameRef() to decode; in ROCm 7.2, it has 83

// Follows the path from an object to its name. The name is a std::string of libstdc++ or libc++, which begins with the
// address and the number of its characters.
std::optional<std::string> name_at(pid_t pid, const Path& path, uint64_t object)
{
    uint64_t place = object;
    for (size_t i = 0; i + 1 < path.size(); i++)
        if (!is_address(place) || !read_memory(pid, place + path[i], &place, sizeof(place)))
            return std::nullopt;
    std::array<uint64_t, 2> text{};
    if (!is_address(place) || !read_memory(pid, place + path.back(), text.data(), sizeof(text)))
        return std::nullopt;
    const auto [characters, length] = text;
    if (!is_address(characters) || length == 0 || length >= hip_name_max)
        return std::nullopt;
    auto name = read_string(pid, characters, length + 1);
    const auto is_graphic = [](char c) { return c > ' ' && c <= '~'; };
    return name && name->size() == length && std::ranges::all_of(*name, is_graphic) ? name : std::nullopt;
}

} // namespace

std::optional<Path> hip_name_path(const Elf& library)
{
    constexpr std::string_view names[] = {"hipKernelNameRef"};
    const std::vector<Symbol> found = library.functions(names);
    if (found.size() != 1)
        return std::nullopt;
    const CodeAt code_at = [&](uint64_t address) {
        const auto offset = library.offset_of(address);
        return offset ? library.bytes(*offset, function_max) : std::vector<uint8_t>();
    };
    const auto target = DispatchTables(library).target(found.front());
    const uint64_t address = target ? target->address : found.front().address;
    const std::vector<uint8_t> code = code_at(address);
    return host_decoder().path({code, address}, code_at);
}

bool HipObjects::Known::trusted() const
{
    return names.size() >= names_needed;
}

uint64_t HipObjects::trusted_libraries() const
{
    return static_cast<uint64_t>(
        std::ranges::count_if(libraries_, [](const auto& item) { return item.second.trusted(); }));
}

HipObjects::Known* HipObjects::known(const Library& library)
{
    const auto before = libraries_.find(library.build_id);
    if (before != libraries_.end())
        return before->second.path.empty() ? nullptr : &before->second;
    if (library.build_id.empty() || libraries_.size() >= libraries_max)
        return nullptr;
    Known& made = libraries_[library.build_id];
    made.path = hip_name_path(library.file).value_or(Path());
    return made.path.empty() ? nullptr : &made;
}

void HipObjects::learn(pid_t pid, const Library& library, uint64_t handle, std::string_view name)
{
    Known* const state = known(library);
    if (!state)
        return;
    const auto found = name_at(pid, state->path, handle);
    if (found && *found != name)
        *state = {};
    else if (found && !state->trusted())
        state->names.insert(std::hash<std::string_view>()(name));
}

std::optional<std::string> HipObjects::name(pid_t pid, const Library& library, uint64_t handle)
{
    Known* const state = known(library);
    auto found = state ? name_at(pid, state->path, handle) : std::nullopt;
    if (!found)
        return std::nullopt;
    if (!state->trusted())
        state->names.insert(std::hash<std::string_view>()(*found));
    return state->trusted() ? found : std::nullopt;
}

} // namespace gpusnoop
