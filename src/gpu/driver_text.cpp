// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver_text.hpp"

#include "gpu/driver_names.hpp"

#include <cstring>
#include <fmt/format.h>
#include <linux/ioctl.h>

namespace gpusnoop {

namespace {

// What is said of the number of a command in its space.
struct Space {
    command_space space;
    char magic; // of encoded numbers; 0: plain ones
    uint32_t number(uint32_t request) const { return magic ? _IOC_NR(request) : request; }
    bool takes(uint32_t request) const { return !magic || _IOC_TYPE(request) == static_cast<unsigned>(magic); }
};

Space space_of(uint8_t node)
{
    constexpr char magic[SPACES] = {0, 'F', 0, 'm', 'K', 'd'}; // by enum command_space
    const command_space space = space_of_node(node);
    return {space, magic[space]};
}

uint32_t request_of(uint64_t subject)
{
    return static_cast<uint32_t>(subject);
}

// What the number in a command's struct stands for (bpf/kinds/driver.bpf.h reads it).
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

std::string known(std::string_view name, uint32_t number)
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
        space.takes(request) ? command_name(space.space, space.number(request)) : std::string_view();
    std::string text = known(name, request);
    const auto about = static_cast<uint32_t>(subject >> 32);
    switch (subject_of(node, subject, flags)) {
    case Subject::control:
        return text + " " + known(control_name(about), about);
    case Subject::object_class:
        return text + " " + known(class_name(about), about);
    case Subject::heap_function:
        return text + " " + known(heap_function_name(about), about);
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
        return about >> 16; // finn-generated commands begin with the number of their class
    case Subject::object_class:
        return about;
    default:
        return std::nullopt;
    }
}

std::string class_text(std::optional<uint32_t> number)
{
    return number ? known(class_name(*number), *number) : std::string();
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
        return known(nv_status_name(static_cast<uint32_t>(result)), static_cast<uint32_t>(result));
    default:
        return "ok";
    }
}

} // namespace gpusnoop
