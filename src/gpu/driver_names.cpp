// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver_names.hpp"

#include "driver_tables.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <linux/ioctl.h>
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
        {"DRM_AMDGPU_", "DRM_"}, // AMDGPU_ is kept, because a name like CS alone is unclear
    };
    for (auto [whole, cut] : starts)
        if (name.starts_with(whole))
            return std::string(name.substr(cut.size()));
    // A control command's prefix contains a class number: NV2080_CTRL_CMD_.
    if (name.starts_with("NV"))
        for (std::string_view marker : {"_CTRL_CMD_", "_CTRL_"})
            if (auto at = name.find(marker); at != name.npos)
                return std::string(name.substr(at + marker.size()));
    return std::string(name);
}

namespace {

// A command space, and the encoding of command numbers in its ioctl requests.
struct Space {
    command_space space;
    char magic; // type field of encoded requests (_IOC_TYPE); 0: requests are plain command numbers
    uint32_t number(uint32_t request) const { return magic ? _IOC_NR(request) : request; }
    bool matches(uint32_t request) const { return !magic || _IOC_TYPE(request) == static_cast<unsigned>(magic); }
};

Space space_of(uint8_t node)
{
    constexpr char magic[SPACES] = {0, 'F', 0, 'm', 'K', 'd'}; // indexed by enum command_space
    const command_space space = space_of_node(node);
    return {space, magic[space]};
}

uint32_t request_of(uint64_t subject)
{
    return static_cast<uint32_t>(subject);
}

// Meaning of the number that bpf/kinds/driver.bpf.h has read from a command's struct.
enum class Subject : uint8_t { none, control, object_class, heap_function };

constexpr uint32_t escape_control = 0x2a, escape_alloc = 0x2b, escape_alloc_memory = 0x27, escape_alloc_object = 0x28,
                   escape_heap = 0x4a;

Subject subject_of(uint8_t node, uint64_t subject, uint8_t flags)
{
    if (!(flags & CALL_SUBJECT) || space_of(node).space != SPACE_NVIDIA)
        return Subject::none;
    switch (_IOC_NR(request_of(subject))) {
    case escape_control:
        return Subject::control;
    case escape_alloc:
    case escape_alloc_memory:
    case escape_alloc_object:
        return Subject::object_class;
    case escape_heap:
        return Subject::heap_function;
    default:
        return Subject::none;
    }
}

std::string name_or_hex(std::string_view name, uint32_t number)
{
    return name.empty() ? fmt::format("0x{:x}", number) : short_name(name);
}

} // namespace

std::string command_text(uint8_t kind, uint8_t node, uint64_t subject, uint8_t flags)
{
    if (kind != ENTRY_IOCTL)
        return kind == ENTRY_OPEN ? "open" : kind == ENTRY_CLOSE ? "close" : "mmap";
    const uint32_t request = request_of(subject);
    const Space space = space_of(node);
    const std::string_view name =
        space.matches(request) ? command_name(space.space, space.number(request)) : std::string_view();
    std::string text = name_or_hex(name, request);
    const auto about = static_cast<uint32_t>(subject >> 32);
    switch (subject_of(node, subject, flags)) {
    case Subject::control:
        return text + " " + name_or_hex(control_name(about), about);
    case Subject::object_class:
        return text + " " + name_or_hex(class_name(about), about);
    case Subject::heap_function:
        return text + " " + name_or_hex(heap_function_name(about), about);
    default:
        return text;
    }
}

std::optional<uint32_t> object_class(const call_key& key)
{
    if (key.kind != ENTRY_IOCTL)
        return std::nullopt;
    const auto about = static_cast<uint32_t>(key.subject >> 32);
    switch (subject_of(key.driver.node, key.subject, key.flags)) {
    case Subject::control:
        return about >> 16; // the upper half of a control command is its class number
    case Subject::object_class:
        return about;
    default:
        return std::nullopt;
    }
}

std::string class_text(std::optional<uint32_t> number)
{
    return number ? name_or_hex(class_name(*number), *number) : std::string();
}

std::string outcome_text(uint8_t outcome, int32_t result)
{
    switch (outcome) {
    case OUTCOME_UNKNOWN:
        return "?";
    case OUTCOME_ERRNO:
        if (const char* name = strerrorname_np(-result))
            return name;
        return fmt::format("errno {}", -result);
    case OUTCOME_STATUS:
        if (!result)
            return "ok";
        return name_or_hex(nv_status_name(static_cast<uint32_t>(result)), static_cast<uint32_t>(result));
    default:
        return "ok";
    }
}

} // namespace gpusnoop
