// SPDX-License-Identifier: Apache-2.0
// Tiers: ways of attaching probes, best first. The tier is chosen by testing kernel features, not by the kernel
// version.
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
    multi,   // 6.6+: one link for all functions of a file; each function has its own cookie
    tracefs, // older kernels: one tracefs event for many functions of a file; a function is identified by the probe's
             // address modulo 4096
    perf,    // one perf event per function; detaching takes 0.1 s per event
};

inline constexpr std::string_view tier_names[] = {"session", "multi", "tracefs", "perf"};

std::string_view tier_name(Tier tier);
Tier tier_from_name(std::string_view name); // one of tier_names

// The best tier that this kernel supports.
Tier best_tier();

// False on Linux 6.6 to 6.9 (before 46ba0e49b642), where uprobe_multi filters by thread instead of by process, so that
// the BPF program has to filter.
bool multi_filters_processes();

// True if return probes kill processes that use seccomp. Since 6.11 (ff474a78cef5), functions with a return probe
// return through a special system call, which seccomp filters do not allow. Fixed by cf6cb56ef244 (6.14 and stable
// trees).
bool return_probes_break_seccomp();

// Attach types that the headers of the oldest supported distribution lack.
inline constexpr int uprobe_multi_attach_type = 48;
inline constexpr int uprobe_session_attach_type = 57;

// Parameters of create_link(). offsets and cookies are parallel arrays. If pid is 0, probes every process.
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
// Creates a link of a uprobe_multi or session program (BPF_LINK_CREATE). Used because libbpf 1.4 does not support
// session programs. Returns a file descriptor or -errno.
int create_link(const MultiLink& link);

// uprobe events in tracefs, for kernels without uprobe_multi. Many places share one event, so attaching or detaching
// hundreds of places takes no longer than a single place.

// Private mount of tracefs, outside the directory tree. The destructor unmounts it.
class Tracefs {
public:
    Tracefs(); // throws Error
    int directory() const { return mount_.get(); }

private:
    Fd mount_;
};

struct LeftoverEvents {
    unsigned removed = 0;
    unsigned in_use = 0; // not removed: the process that made them has exited, but the kernel reports them as in use
    unsigned of_running = 0; // not removed: a process has the pid of the run that made them, possibly because the pid
                             // was reused
};

// Removes the events that killed runs left behind, because such events keep the file systems of the probed files busy.
LeftoverEvents remove_leftover_events(const Tracefs& tracefs);

// Returns the id of a tracepoint such as "syscalls/sys_enter_ioctl"; nullopt if it does not exist.
std::optional<uint64_t> tracepoint_id(const Tracefs& tracefs, const std::string& name);

// One uprobe event for several places in a file. The destructor removes the event.
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
