// SPDX-License-Identifier: Apache-2.0
#include "names/driver_objects.hpp"

#include "base/machine.hpp"
#include "proc/process.hpp"

#include <algorithm>

namespace gpusnoop {
namespace {

constexpr size_t name_max = 4096;
constexpr size_t names_needed = 2; // different ones at one offset: that is no accident
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
    // A few kernels of each driver are enough.
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
        const auto text = read_string(pid, (*object)[i], name_max);
        if (!text || text->empty() || text->size() >= name_max || !is_kernel(*text))
            continue;
        if (offsets[i].names.size() < names_needed)
            offsets[i].names.insert(std::hash<std::string_view>()(*text));
        if (offsets[i].trusted())
            return text;
    }
    return std::nullopt;
}

} // namespace gpusnoop
