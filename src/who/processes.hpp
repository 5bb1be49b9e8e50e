// SPDX-License-Identifier: Apache-2.0
// Who the process images on the kernel side are. A process that has gone keeps its name and its owner until it is
// forgotten.
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

// Some figures of a process are estimates: its calls were counted for a part of the time that it worked.
struct Sampled {
    double percent = 100;          // of the CPU time that it used
    std::optional<double> error{}; // percent: the estimate and the truth differ by less, in 19 of 20 reports
};

struct ProcessInfo {
    uint64_t start_ns = 0; // CLOCK_BOOTTIME; 0 unknown
    uint64_t seen_ns = 0;  // first, CLOCK_MONOTONIC
    bool replaced = false; // by another program (exec)
    uint32_t ns_pid = 0;   // in its innermost pid namespace; 0 unknown
    cgroups cgroup{};      // that its first call came from
    std::string comm;      // of the group leader; empty unknown
};

class Processes {
public:
    // waits: see Reader.
    Processes(int map_fd, const std::string& host_root, WaitBudget* waits = nullptr)
        : map_fd_(map_fd), cgroup_mounts_(cgroup_mounts(host_root)), attribution_(host_root, waits),
          command_lines_(waits)
    {}

    void learn(const process_record& record);
    // The image that runs in a process. One that has not called yet is known by what /proc says of it until it does.
    ImageId track(uint32_t pid);

    const ProcessInfo& info(const ImageId& image);
    // The name of a thread, of one that has exited as it was last known. Empty unknown.
    const std::string& thread_name(const ImageId& image, uint32_t tid);
    // The same as the kernel side has it: at its first call, or when it ended. comm: 16 bytes, zero-padded.
    void learn_thread(const ImageId& image, uint32_t tid, std::span<const char, 16> comm, bool ended);
    // The kernel side's map of thread names (bpf/base/call.bpf.h), by descriptor, and how many it should hold.
    void read_threads_from(int map_fd) { threads_fd_ = map_fd; }
    static constexpr uint32_t thread_names_max = 4096;

    // As the process has it: show it with printable(). Empty unknown.
    const std::string& command_line(const ImageId& image);
    // Of the cgroups a call came from; those of the process' first call where the call has none with it.
    const Owner& owner(const ImageId& image, const cgroups& ids);

    // From here on, all that a process does is seen. boot_ns: CLOCK_BOOTTIME.
    void set_tracing_start(uint64_t boot_ns) { began_ns_ = boot_ns; }
    // One of them may have called before that: what it did then is not known.
    bool any_began_before_tracing(const std::set<ImageId>& images) const;

    // Figures of these, by pid, are estimates.
    void set_sampled(std::map<uint32_t, Sampled> sampled) { sampled_ = std::move(sampled); }
    // The worst of them; nullopt: of none.
    std::optional<Sampled> sampled(const std::set<ImageId>& images) const;

    // The process has called exec: those of its images that were seen before are gone. False where there are none.
    bool on_exec(uint32_t pid, uint64_t time_ns);

    // Names change (prctl, exec): ask again on the next info(). Forgets threads that were not used since the last call.
    void refresh();
    // Images of these pids that are gone; pids whose images are all gone are taken out. Adds those that exited before
    // the record of their image was read.
    std::vector<ImageId> extract_exited(std::set<uint32_t>& pids);
    // Of all that are known.
    std::set<uint32_t> pids() const;
    // Those that have exited, or whose number is another's by now.
    std::set<pid_t> exited() const;
    std::vector<ImageId> images() const; // that run
    void forget(const std::set<ImageId>& images);

private:
    // The image runs no more, though its pid may be taken again, or a zombie.
    bool has_exited(const ImageId& image);
    bool same_process(const ImageId& image);

    bool began_before_tracing(const ProcessInfo& info) const;

    struct Thread {
        std::string name;
        bool fresh = false; // read since the last refresh()
        bool used = true;   // since then
    };

    int map_fd_;
    std::vector<CgroupMount> cgroup_mounts_;
    int threads_fd_ = -1;
    std::map<std::pair<ImageId, uint32_t>, Thread> threads_; // by tid
    Attribution attribution_;
    CommandLines command_lines_;
    std::map<uint32_t, Sampled> sampled_;
    uint64_t began_ns_ = 0;
    std::set<uint32_t> executed_; // from before, and another program since
    std::map<ImageId, ProcessInfo> known_;
    std::set<ImageId> learned_; // since the last extract_exited()
    std::set<ImageId> fresh_;
};

// The processes of -n: those that have, or have had, a thread whose name contains a text. A new thread has the name of
// the one that made it, so only what is told here can make a process one of them.
class NamedProcesses {
public:
    explicit NamedProcesses(std::string part) : part_(std::move(part)) {}

    const std::set<pid_t>& pids() const { return pids_; }
    bool contains(pid_t pid) const { return pids_.contains(pid); }

    // A thread of the process has been given this name. True where that makes the process one of them.
    bool on_rename(pid_t pid, std::string_view name);
    // The child has the name of the thread that made it.
    bool on_fork(pid_t child);
    // It is another program, whose only thread has this name. True where it was one of them, and is none now.
    bool on_exec(pid_t pid, std::string_view name);
    void remove(pid_t pid) { pids_.erase(pid); }
    // All threads that there are.
    void rescan();

private:
    bool fits(std::string_view name) const { return name.find(part_) != std::string_view::npos; }

    std::string part_;
    std::set<pid_t> pids_;
};

// A process and those that descend from it, as forks are told: by CPU, so that a grandchild's may come before its
// parent's own.
class Descendants {
public:
    explicit Descendants(pid_t first) : all_{first} {}

    // Those that are known to be descendants now: the child, and those that were told of before it.
    std::vector<pid_t> on_fork(pid_t child, pid_t parent);
    bool contains(pid_t pid) const { return all_.contains(pid); }
    void remove(pid_t pid) { all_.erase(pid); }
    // What has been told by now and fits nobody is of others.
    void drop_unmatched() { unmatched_.clear(); }

private:
    static constexpr size_t unmatched_max = 65536; // within a second

    std::set<pid_t> all_;
    std::multimap<pid_t, pid_t> unmatched_; // by parent
};

} // namespace gpusnoop
