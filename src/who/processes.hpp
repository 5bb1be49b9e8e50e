// SPDX-License-Identifier: Apache-2.0
// Names, owners and threads of process images. Those of an exited process are kept until it is forgotten.
#pragma once

#include "proc/mapped_file.hpp"
#include "who/attribution.hpp"
#include "who/cgroup_mounts.hpp"
#include "who/command_lines.hpp"

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gpusnoop {

// Some figures of a process are estimates, because its calls were counted for a part of the time only.
struct Sampled {
    double percent = 100;          // of its CPU time that was counted
    std::optional<double> error{}; // percent: bound of the estimate's error in 19 of 20 reports
};

struct ProcessInfo {
    uint64_t start_ns = 0; // CLOCK_BOOTTIME; 0: unknown
    uint64_t seen_ns = 0;  // first seen, CLOCK_MONOTONIC
    bool replaced = false; // by another program (exec)
    uint32_t ns_pid = 0;   // in its innermost pid namespace; 0: unknown
    cgroups cgroup{};      // of its first call
    std::string comm;      // of the group leader; empty: unknown
};

class Processes {
public:
    // waits: see Reader.
    Processes(int map_fd, const std::string& host_root, WaitBudget* waits = nullptr)
        : map_fd_(map_fd), cgroup_mounts_(cgroup_mounts(host_root)), attribution_(host_root, waits),
          command_lines_(waits)
    {}

    void learn(const process_record& record);
    // The image that a process runs. Before its first traced call, its facts come from /proc.
    ImageId track(uint32_t pid);

    const ProcessInfo& info(const ImageId& image);
    // The name of a thread, or its last known name if it has exited. Empty: unknown.
    const std::string& thread_name(const ImageId& image, uint32_t tid);
    // A name from the BPF side, at the thread's first call or at its exit. comm: 16 bytes, zero-padded.
    void learn_thread(const ImageId& image, uint32_t tid, std::span<const char, 16> comm, bool ended);
    // The BPF side's map of thread names (bpf/base/call.bpf.h), and its capacity.
    void read_threads_from(int map_fd) { threads_fd_ = map_fd; }
    static constexpr uint32_t thread_names_max = 4096;

    // Controlled by the process: show it with printable(). Empty: unknown.
    const std::string& command_line(const ImageId& image);
    // ids: cgroups of a call; if it has none, those of the process's first call are used.
    const Owner& owner(const ImageId& image, const cgroups& ids);

    // All calls after this time are traced. boot_ns: CLOCK_BOOTTIME.
    void set_tracing_start(uint64_t boot_ns) { began_ns_ = boot_ns; }
    // True if one of the images may have made calls before tracing began, which are unknown.
    bool any_began_before_tracing(const std::set<ImageId>& images) const;

    // Processes, by pid, whose figures are estimates.
    void set_sampled(std::map<uint32_t, Sampled> sampled) { sampled_ = std::move(sampled); }
    // The one with the lowest percentage; nullopt: none of them is sampled.
    std::optional<Sampled> sampled(const std::set<ImageId>& images) const;

    // The process has called exec: its earlier images have ended. Returns false if it has none.
    bool on_exec(uint32_t pid, uint64_t time_ns);

    // Makes info() read names again, as they change (prctl, exec). Forgets threads that were not used since the last
    // call.
    void refresh();
    // Returns the ended images of these pids, and removes the pids without other images. Includes processes that exited
    // before the record of their image was read.
    std::vector<ImageId> extract_exited(std::set<uint32_t>& pids);
    // Of all known images.
    std::set<uint32_t> pids() const;
    // Known processes that have exited, or whose pid was reused.
    std::set<pid_t> exited() const;
    std::vector<ImageId> images() const; // that have not ended
    void forget(const std::set<ImageId>& images);

private:
    // The image has ended; its pid may be reused or a zombie's.
    bool has_exited(const ImageId& image);
    bool same_process(const ImageId& image);

    bool began_before_tracing(const ProcessInfo& info) const;

    struct Thread {
        std::string name;
        bool fresh = false; // read since the last refresh()
        bool used = true;   // used since the last refresh()
    };

    int map_fd_;
    std::vector<CgroupMount> cgroup_mounts_;
    int threads_fd_ = -1;
    std::map<std::pair<ImageId, uint32_t>, Thread> threads_; // by tid
    Attribution attribution_;
    CommandLines command_lines_;
    std::map<uint32_t, Sampled> sampled_;
    uint64_t began_ns_ = 0;
    std::set<uint32_t> executed_; // began before tracing, and have called exec since
    std::map<ImageId, ProcessInfo> known_;
    std::set<ImageId> learned_; // since the last extract_exited()
    std::set<ImageId> fresh_;
};

// The processes of -n: those with a thread whose name contains a text, or did once. A new thread has the name of its
// creator, so processes are added only by the events below.
class NamedProcesses {
public:
    explicit NamedProcesses(std::string part) : part_(std::move(part)) {}

    const std::set<pid_t>& pids() const { return pids_; }
    bool contains(pid_t pid) const { return pids_.contains(pid); }

    // A thread of the process has this name now. Returns true if that adds the process.
    bool on_rename(pid_t pid, std::string_view name);
    // The child has the name of the thread that created it. Returns true if that adds the child.
    bool on_fork(pid_t child);
    // The process runs another program, whose only thread has this name. Returns true if that removes the process.
    bool on_exec(pid_t pid, std::string_view name);
    void remove(pid_t pid) { pids_.erase(pid); }
    // Adds processes by the names of all their threads.
    void rescan();

private:
    bool matches(std::string_view name) const { return name.find(part_) != std::string_view::npos; }

    std::string part_;
    std::set<pid_t> pids_;
};

// A process and its descendants, from fork events. Events of several CPUs are not in order: a grandchild's event may
// arrive before its parent's.
class Descendants {
public:
    explicit Descendants(pid_t first) : all_{first} {}

    // Returns the descendants that are known now: the child, and its own descendants whose events arrived earlier.
    std::vector<pid_t> on_fork(pid_t child, pid_t parent);
    bool contains(pid_t pid) const { return all_.contains(pid); }
    void remove(pid_t pid) { all_.erase(pid); }
    // Drops earlier forks without a known parent: they belong to other processes.
    void drop_unmatched() { unmatched_.clear(); }

private:
    static constexpr size_t unmatched_max = 65536; // per second

    std::set<pid_t> all_;
    std::multimap<pid_t, pid_t> unmatched_; // child by parent
};

} // namespace gpusnoop
