// SPDX-License-Identifier: Apache-2.0
// How probes are attached on this kernel. Chosen by trying, never by version.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gpusnoop {

enum class Tier : uint8_t {
    session, // 6.13+: entry and return in one program; entries without a return as in multi
    multi,   // 6.6+: all functions of a file in one link, with cookies
    tracefs, // older: many functions of a file in one tracefs event; told apart by their address in the page
    perf,    // a perf event per function: detaching takes 0.1 s each
};

inline constexpr std::string_view tier_names[] = {"session", "multi", "tracefs", "perf"};

std::string_view tier_name(Tier tier);
Tier tier_from_name(std::string_view name); // one of tier_names

// The first tier that this kernel takes.
Tier best_tier();

// False on 6.6 to 6.9 (before 46ba0e49b642), whose uprobe_multi compares the thread with the target, not the process:
// the filter must then be in the program.
bool multi_filters_processes();

// True where a return probe kills a process that runs under seccomp: the return goes through a system call of its own
// (6.11, ff474a78cef5) which the process' filter does not know (until cf6cb56ef244, 6.14 and stable trees).
bool return_probes_break_seccomp();

// Attach types that the headers of the oldest supported distribution do not have yet.
inline constexpr int uprobe_multi_attach_type = 48;
inline constexpr int uprobe_session_attach_type = 57;

// BPF_LINK_CREATE for uprobe_multi and session programs; libbpf 1.4 knows no session. Offsets and cookies run in
// parallel. pid 0: every process. Returns a file descriptor or -errno.
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

// uprobe events in tracefs, for kernels without uprobe_multi. Any number of places share one event, so that attaching
// and detaching cost the same for one and for hundreds.

// An own mount of tracefs that no path leads to; it goes away with the object.
class Tracefs {
public:
    Tracefs(); // throws Error
    int directory() const { return mount_.get(); }

private:
    Fd mount_;
};

struct LeftoverEvents {
    unsigned removed = 0;
    unsigned in_use = 0;     // of processes that have ended here, but the kernel says that somebody uses them
    unsigned of_running = 0; // of other processes that are alive, whoever they are by now
};

// Removes the events of runs that were killed: they keep the file systems of their files in use.
LeftoverEvents remove_leftover_events(const Tracefs& tracefs);

// The number of a tracepoint ("syscalls/sys_enter_ioctl"); nullopt where there is none.
std::optional<uint64_t> tracepoint_id(const Tracefs& tracefs, const std::string& name);

// One event over places in one file; removed with the object.
class UprobeEvent {
public:
    // path: of the file, opened in this process. Throws Error.
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
