// SPDX-License-Identifier: Apache-2.0
#include "driver_calls.hpp"

#include "driver_names.hpp"
#include "process.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <linux/ioctl.h>
#include <sys/syscall.h>

namespace gpusnoop {

static_assert(sizeof(driver_form) == 4 && sizeof(driver_call) == 72 + 24);
static_assert(sizeof(recent_call) == 40 && sizeof(recent_calls) == 16 + RECENT_CALLS * 40);
static_assert(sizeof(command_key) == 8 && sizeof(command_layout) == 8);
static_assert(sizeof(size_key) == 16 && sizeof(size_layout) == 8);

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

// The same for all nodes that take the same commands.
uint8_t any_node_of(uint8_t node)
{
    switch (node) {
    case NODE_NVIDIA_GPU:
        return NODE_NVIDIA_CTL;
    case NODE_NVIDIA_UVM_TOOLS:
        return NODE_NVIDIA_UVM;
    default:
        return node;
    }
}

uint32_t request_of(uint64_t subject)
{
    return static_cast<uint32_t>(subject);
}

// What the number in a command's struct stands for (bpf/driver.bpf.h reads it).
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

DriverGroup& DriverGroups::group_of(const call_key& key)
{
    DriverKey group;
    static_cast<CallKey&>(group) = call_group(settings_.view, processes_, key);
    if (settings_.command) {
        group.kind = key.kind;
        group.flags = key.flags & CALL_SUBJECT;
        group.subject = key.subject;
        // The same number means another thing to another driver.
        if (key.kind == ENTRY_IOCTL)
            group.node = any_node_of(key.driver.node);
    }
    if (settings_.node) {
        group.node = key.driver.node;
        group.minor = key.driver.minor;
    }
    if (settings_.object_class)
        group.object_class = object_class(key);
    if (settings_.view.result)
        group.outcome = key.driver.outcome;
    DriverGroup& found = groups_[group];
    found.who.add(key.image, processes_.owner(key.image, key.cgroups));
    return found;
}

void DriverGroups::add(const CallDelta& delta)
{
    DriverGroup& group = group_of(delta.key);
    const driver_form& form = delta.key.driver;
    group.calls += delta.count;
    if (is_failure(form.outcome, delta.key.result))
        group.errors += delta.count;
    if (form.outcome == OUTCOME_UNKNOWN)
        group.unknown += delta.count;
    (delta.key.flags & CALL_VIRTUAL ? group.virtual_bytes : group.bytes) += delta.memory.bytes;
    group.total_ns += delta.total_ns;
    group.max_ns = std::max(group.max_ns, delta.max_ns);
    if (delta.key.duration != BUCKET_NONE)
        group.duration.add(delta.key.duration, delta.count);
}

void DriverGroups::add(const driver_call& pending, uint64_t now_ns)
{
    const uint64_t elapsed = now_ns > pending.since_ns ? now_ns - pending.since_ns : 0;
    if (elapsed < settings_.least_ns)
        return;
    DriverGroup& group = group_of(pending.key);
    group.pending++;
    group.pending_ns = std::max(group.pending_ns, elapsed);
}

namespace {

// False where it can be told that the thread is in another system call, or in none.
bool may_be_in_call(const driver_call& call, uint32_t tid)
{
    std::ifstream file(fmt::format("/proc/{}/task/{}/syscall", call.key.image.pid, tid));
    long number = -1;
    if (!(file >> number)) // "running", or not told
        return true;
    switch (call.key.kind) {
    case ENTRY_IOCTL:
        return number == SYS_ioctl;
    case ENTRY_MMAP:
        return number == SYS_mmap;
    default:
        return number >= 0; // files are opened and closed in many ways
    }
}

} // namespace

std::vector<driver_call> PendingCalls::take()
{
    std::vector<driver_call> calls;
    std::vector<uint32_t> dead;
    map_.for_each([&](uint32_t tid, std::span<const driver_call> values) {
        const driver_call& call = values[0];
        const uint64_t start = thread_start_time_ns(static_cast<pid_t>(call.key.image.pid), static_cast<pid_t>(tid));
        const bool alive = start && start == to_clock_tick(call.thread_start_ns);
        if (alive && may_be_in_call(call, tid)) {
            calls.push_back(call);
        } else {
            dead.push_back(tid);
            missed_ += alive;
        }
    });
    for (uint32_t tid : dead)
        map_.erase(tid);
    return calls;
}

} // namespace gpusnoop
