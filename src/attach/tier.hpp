// SPDX-License-Identifier: Apache-2.0
// Tiers: ways of attaching probes, best first. The tier is chosen by trying, never by kernel version.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gpusnoop {

enum class Tier : uint8_t {
    session, // 6.13+: one program for entry and return; functions without a return probe are attached as in multi
    multi,   // 6.6+: one link for all functions of a file, with cookies
    tracefs, // older kernels: one tracefs event for many functions of a file, distinguished by their offset in a page
    perf,    // a perf event per function; each takes 0.1 s to detach
};

inline constexpr std::string_view tier_names[] = {"session", "multi", "tracefs", "perf"};

std::string_view tier_name(Tier tier);
Tier tier_from_name(std::string_view name); // one of tier_names

// The best tier that this kernel supports.
Tier best_tier();

// False on Linux 6.6 to 6.9 (before 46ba0e49b642). Their uprobe_multi filters by thread, not by process, so the BPF
// program has to filter.
bool multi_filters_processes();

// True if a return probe kills processes that use seccomp: probed functions return through a special system call (since
// 6.11, ff474a78cef5), which seccomp filters do not allow. Fixed by cf6cb56ef244 (6.14 and stable trees).
bool return_probes_break_seccomp();

// Attach types that the headers of the oldest supported distribution lack.
inline constexpr int uprobe_multi_attach_type = 48;
inline constexpr int uprobe_session_attach_type = 57;

// BPF_LINK_CREATE for uprobe_multi and session programs; libbpf 1.4 does not support session. offsets and cookies
// are parallel arrays. pid 0: every process. Returns a file descriptor or -errno.
struct MultiLink {
    int program = -1;
    int attach_type = uprobe_multi_attach_type;
    const char* path = nullptr;
    const uint64_t* offsets = nullptr;
    const uint64_t* cookies = nullptr;
    uint32_t count = 0;
    bool on_return = false;
    int pid = 0;
};
int create_link(const MultiLink& link);

// uprobe events in tracefs, for kernels without uprobe_multi. Many places share one event, so attaching and detaching
// hundreds of places costs no more than one.

// Private mount of tracefs, outside the directory tree; unmounted with the object.
class Tracefs {
public:
    Tracefs(); // throws Error
    int directory() const { return mount_.get(); }

private:
    Fd mount_;
};

struct LeftoverEvents {
    unsigned removed = 0;
    unsigned in_use = 0;     // their process has exited, but the kernel refuses to remove them, because they are in use
    unsigned of_running = 0; // left in place, because a process with their process id is running; it may be unrelated
};

// Removes the events that killed runs left behind, because these keep the file systems of the probed files busy.
LeftoverEvents remove_leftover_events(const Tracefs& tracefs);

// The number of a tracepoint ("syscalls/sys_enter_ioctl"); nullopt if there is none.
std::optional<uint64_t> tracepoint_id(const Tracefs& tracefs, const std::string& name);

// A uprobe event on places in one file. The destructor removes the event.
class UprobeEvent {
public:
    // path: the path by which this process can open the file. Throws Error.
    UprobeEvent(const Tracefs& tracefs, const std::string& path, std::span<const uint64_t> offsets, bool on_return);
    ~UprobeEvent();
    UprobeEvent(const UprobeEvent&) = delete;
    UprobeEvent& operator=(const UprobeEvent&) = delete;

    uint64_t id() const { return id_; } // for attach_tracepoint()

private:
    void remove() noexcept;

    const Tracefs& tracefs_;
    std::string name_;
    uint64_t id_ = 0;
};

} // namespace gpusnoop
