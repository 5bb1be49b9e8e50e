// SPDX-License-Identifier: Apache-2.0
// Tiers: ways of attaching probes, best first. Chosen by trying, never by kernel version.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gpusnoop {

enum class Tier : uint8_t {
    session, // 6.13+: one program for entry and return; entries without a return as in multi
    multi,   // 6.6+: all functions of a file in one link, with cookies
    tracefs, // older: many functions of a file in one tracefs event, distinguished by their offset in a page
    perf,    // a perf event per function: detaching takes 0.1 s each
};

inline constexpr std::string_view tier_names[] = {"session", "multi", "tracefs", "perf"};

std::string_view tier_name(Tier tier);
Tier tier_from_name(std::string_view name); // one of tier_names

// The best tier that this kernel supports.
Tier best_tier();

// False on 6.6 to 6.9 (before 46ba0e49b642): their uprobe_multi filters by thread, not by process, so the BPF program
// has to filter.
bool multi_filters_processes();

// True if a return probe kills processes under seccomp: the probed function returns through a special system call
// (6.11, ff474a78cef5), which their filters do not allow. Fixed by cf6cb56ef244 (6.14 and stable trees).
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
// cost the same for one place and for hundreds.

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
    unsigned in_use = 0;     // their process has exited, but the kernel reports them as busy
    unsigned of_running = 0; // their process id is in use, perhaps by an unrelated process
};

// Removes the events that killed runs left behind. They keep the file systems of the probed files busy.
LeftoverEvents remove_leftover_events(const Tracefs& tracefs);

// The number of a tracepoint ("syscalls/sys_enter_ioctl"); nullopt if there is none.
std::optional<uint64_t> tracepoint_id(const Tracefs& tracefs, const std::string& name);

// A uprobe event on places of one file; removed with the object.
class UprobeEvent {
public:
    // path: as this process opens the file. Throws Error.
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
