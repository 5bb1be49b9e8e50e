// SPDX-License-Identifier: Apache-2.0
#include "tools/nvioctl/driver_calls.hpp"

#include "gpu/driver_names.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <sys/syscall.h>

namespace gpusnoop {

static_assert(sizeof(driver_form) == 4 && sizeof(driver_call) == 72 + 24);
static_assert(sizeof(recent_call) == 40 && sizeof(recent_calls) == 16 + RECENT_CALLS * 40);
static_assert(sizeof(command_key) == 8 && sizeof(command_layout) == 8);
static_assert(sizeof(size_key) == 16 && sizeof(size_layout) == 8);

namespace {

// Returns the same representative for all device nodes that accept the same commands.
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

} // namespace

void DriverKey::set(const DriverSettings& settings, const call_key& call)
{
    if (settings.command) {
        kind = call.kind;
        flags = call.flags & CALL_SUBJECT;
        subject = call.subject;
        // The meaning of a request number depends on the driver.
        if (call.kind == ENTRY_IOCTL)
            node = any_node_of(call.driver.node);
    }
    if (settings.node) {
        node = call.driver.node;
        minor = call.driver.minor;
    }
    if (settings.object_class)
        object_class = gpusnoop::object_class(call);
    if (settings.view.result)
        outcome = call.driver.outcome;
}

void DriverGroup::add(const CallDelta& delta)
{
    const call_key& key = delta.key;
    calls += delta[CALL_COUNT];
    if (is_failure(key.driver.outcome, key.result))
        errors += delta[CALL_COUNT];
    if (key.driver.outcome == OUTCOME_UNKNOWN)
        unknown += delta[CALL_COUNT];
    (key.flags & CALL_VIRTUAL ? virtual_bytes : bytes) += delta[MEMORY_BYTES];
    total_ns += delta[CALL_TOTAL_NS];
    max_ns = std::max(max_ns, delta[CALL_MAX_NS]);
    if (key.duration != BUCKET_NONE)
        duration.add(key.duration, delta[CALL_COUNT]);
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

// False if the thread is known to be in another system call, or in none.
bool may_be_in_call(const driver_call& call, uint32_t tid)
{
    std::ifstream file(fmt::format("/proc/{}/task/{}/syscall", call.key.image.pid, tid));
    long number = -1;
    if (!(file >> number)) // the file contains "running", or cannot be read
        return true;
    switch (call.key.kind) {
    case ENTRY_IOCTL:
        return number == SYS_ioctl;
    case ENTRY_MMAP:
        return number == SYS_mmap;
    default:
        return number >= 0; // an open or close may come from many different system calls
    }
}

} // namespace

std::vector<driver_call> PendingCalls::read()
{
    std::vector<driver_call> calls;
    struct Stale {
        uint32_t tid;
        driver_call call;
        bool alive; // the thread has not exited
    };
    std::vector<Stale> stale;
    map_.for_each([&](uint32_t tid, std::span<const driver_call> values) {
        const driver_call& call = values[0];
        const uint64_t start = thread_start_time_ns(static_cast<pid_t>(call.key.image.pid), static_cast<pid_t>(tid));
        const bool alive = start && start == to_clock_tick(call.thread_start_ns);
        if (alive && may_be_in_call(call, tid))
            calls.push_back(call);
        else
            stale.push_back({tid, call, alive});
    });
    for (const Stale& one : stale)
        drop(one.tid, one.call, one.alive);
    return calls;
}

// Removes the call's entry, unless the entry now holds a later call. This happens if the call has returned and the
// thread, or a new thread with the same id, has begun another call.
void PendingCalls::drop(uint32_t tid, const driver_call& call, bool alive)
{
    const auto is_another = [&](const driver_call& now) {
        return now.since_ns != call.since_ns || now.thread_start_ns != call.thread_start_ns;
    };
    const std::optional<driver_call> now = map_.find(tid);
    if (!now || is_another(*now))
        return;
    const std::optional<driver_call> taken = map_.extract(tid);
    if (taken && is_another(*taken))
        map_.insert(tid, *taken);
    else if (taken)
        missed_ += alive;
}

} // namespace gpusnoop
