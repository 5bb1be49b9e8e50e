// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver_names.hpp"
#include "driver_tables.hpp"

#include <algorithm>
#include <span>

namespace gpusnoop {
namespace {

template<class Rows>
auto find_row(const Rows& rows, uint32_t number) -> decltype(&*std::begin(rows))
{
    auto found = std::ranges::lower_bound(rows, number, {}, [](const auto& row) { return row.number; });
    return found != std::end(rows) && found->number == number ? &*found : nullptr;
}

template<class Rows>
std::string_view find_name(const Rows& rows, uint32_t number)
{
    auto row = find_row(rows, number);
    return row ? row->name : "";
}

std::span<const NameRow> commands_of(command_space space)
{
    switch (space) {
    case SPACE_NVIDIA:
        return nvidia_commands;
    case SPACE_UVM:
        return uvm_commands;
    case SPACE_MODESET:
        return modeset_commands;
    case SPACE_KFD:
        return kfd_commands;
    case SPACE_AMDGPU:
        return amdgpu_commands;
    case SPACE_NONE:
    case SPACES:
        break;
    }
    return {};
}

} // namespace

std::string_view command_name(command_space space, uint32_t number)
{
    return find_name(commands_of(space), number);
}

std::string_view control_name(uint32_t command)
{
    return find_name(controls, command);
}

std::string_view class_name(uint32_t class_number)
{
    return find_name(classes, class_number);
}

std::string_view heap_function_name(uint32_t function)
{
    return find_name(heap_functions, function);
}

std::string_view nv_status_name(uint32_t status)
{
    return find_name(statuses, status);
}

ClassKind class_kind(uint32_t class_number)
{
    auto row = find_row(classes, class_number);
    return row ? row->kind : ClassKind::other;
}

bool submits_work(ClassKind kind)
{
    return kind == ClassKind::channel || kind == ClassKind::compute || kind == ClassKind::copy ||
           kind == ClassKind::graphics || kind == ClassKind::video;
}

std::optional<Xid> xid(uint32_t number)
{
    auto row = find_row(xids, number);
    return row ? std::optional(row->xid) : std::nullopt;
}

std::string short_name(std::string_view name)
{
    struct Start {
        std::string_view whole;
        std::string_view cut;
    };
    static constexpr Start starts[] = {
        {"NV_ESC_", "NV_ESC_"},
        {"AMDKFD_IOC_", "AMDKFD_IOC_"},
        {"NVOS32_FUNCTION_", "NVOS32_FUNCTION_"},
        {"NV_ERR_", "NV_ERR_"},
        {"NV_WARN_", "NV_"},
        {"DRM_AMDGPU_", "DRM_"}, // CS says too little
    };
    for (auto [whole, cut] : starts)
        if (name.starts_with(whole))
            return std::string(name.substr(cut.size()));
    // A control names the class that takes it: NV2080_CTRL_CMD_. Names after CTRL_ may begin with a digit.
    if (name.starts_with("NV"))
        for (std::string_view marker : {"_CTRL_CMD_", "_CTRL_"})
            if (auto at = name.find(marker); at != name.npos)
                return std::string(name.substr(at + marker.size()));
    return std::string(name);
}

} // namespace gpusnoop
