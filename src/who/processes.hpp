// SPDX-License-Identifier: Apache-2.0
// Names, owners and threads of process images. They are kept after the process has exited, until forget() is called.
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

// Precision of a process's figures, if they are estimates because its calls were counted only part of the time.
struct Sampled {
    double percent = 100;          // percentage of the process's CPU time during which calls were counted
    std::optional<double> error{}; // bound of the error in percent, valid in 19 of 20 reports
};

struct ProcessInfo {
    uint64_t start_ns = 0; // CLOCK_BOOTTIME; 0: unknown
    uint64_t seen_ns = 0;  // first seen, CLOCK_MONOTONIC
    bool replaced = false; // by another image (exec)
    uint32_t ns_pid = 0;   // pid in its innermost pid namespace; 0: unknown
    cgroups cgroup{};      // its cgroups at its first call
    std::string comm;      // name of the main thread; empty: unknown
};

class Processes {
public:
    // waits: see Reader.
    Processes(int map_fd, const std::string& host_root, WaitBudget* waits = nullptr)
        : map_fd_(map_fd), cgroup_mounts_(cgroup_mounts(host_root)), attribution_(host_root, waits),
          command_lines_(waits)
    {}

    void learn(const process_record& record);
    // The image that a process runs. If it has made no traced call yet, its facts are read from /proc.
    ImageId track(uint32_t pid);

    const ProcessInfo& info(const ImageId& image);
    // The name of a thread, or its last known name if it has exited. Empty if unknown.
    const std::string& thread_name(const ImageId& image, uint32_t tid);
    // Stores a name that the kernel side has sent at the thread's first call, or at its exit (ended). comm is padded
    // with zeros.
    void learn_thread(const ImageId& image, uint32_t tid, std::span<const char, 16> comm, bool ended);
    // The kernel side's map of thread names (bpf/base/call.bpf.h), and its capacity.
    void read_threads_from(int map_fd) { threads_fd_ = map_fd; }
    static constexpr uint32_t thread_names_max = 4096;

    // Empty if unknown. The process controls the text: show it with printable().
    const std::string& command_line(const ImageId& image);
    // ids: the cgroups of a call. If they are 0, the cgroups of the process's first call are used.
    const Owner& owner(const ImageId& image, const cgroups& ids);

    // Sets the time from which all calls are traced. boot_ns: CLOCK_BOOTTIME.
    void set_tracing_start(uint64_t boot_ns) { began_ns_ = boot_ns; }
    // True if one of the images may have made calls before tracing began. Such calls are unknown.
    bool any_began_before_tracing(const std::set<ImageId>& images) const;

    // Sets which processes have figures that are estimates. sampled: by pid.
    void set_sampled(std::map<uint32_t, Sampled> sampled) { sampled_ = std::move(sampled); }
    // The precision of the process with the lowest percentage; nullopt if no figures are estimates.
    std::optional<Sampled> sampled(const std::set<ImageId>& images) const;

    // To be called when a process has called exec, which ends its earlier images. Returns false if none are known.
    bool on_exec(uint32_t pid, uint64_t time_ns);

    // Makes info() and thread_name() read names again, because names change (prctl, exec). Forgets threads that were
    // not used since the last call.
    void refresh();
    // Returns the ended images of `pids`, and removes the pids that have no other images. First adds the pids of
    // processes that exited before the record of their image was read.
    std::vector<ImageId> extract_exited(std::set<uint32_t>& pids);
    std::set<uint32_t> pids() const; // of all known images
    // Known processes that have exited, including those whose pid was reused.
    std::set<pid_t> exited() const;
    std::vector<ImageId> images() const; // images that have not been replaced, in processes not known to have exited
    void forget(const std::set<ImageId>& images);

private:
    // True if the image has ended, even if its pid was reused or belongs to a zombie.
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
    std::map<std::pair<ImageId, uint32_t>, Thread> threads_; // by image and tid
    Attribution attribution_;
    CommandLines command_lines_;
    std::map<uint32_t, Sampled> sampled_;
    uint64_t began_ns_ = 0;
    std::set<uint32_t> executed_; // pids of processes that began before tracing and have called exec since
    std::map<ImageId, ProcessInfo> known_;
    std::set<ImageId> learned_; // images whose records were read since the last extract_exited()
    std::set<ImageId> fresh_;   // images whose names were read since the last refresh()
};

// The processes that -n selects: those with a thread whose name contains a text, or contained it earlier. The events
// below suffice to find them, because a new thread has the name of its creator.
class NamedProcesses {
public:
    explicit NamedProcesses(std::string part) : part_(std::move(part)) {}

    const std::set<pid_t>& pids() const { return pids_; }
    bool contains(pid_t pid) const { return pids_.contains(pid); }

    // A thread of the process now has this name. Returns true if that adds the process.
    bool on_rename(pid_t pid, std::string_view name);
    // A process was created, with the name of the thread that created it. Returns true if that adds the child.
    bool on_fork(pid_t child);
    // The process now runs another program, whose only thread has this name. Returns true if that removes the process.
    bool on_exec(pid_t pid, std::string_view name);
    void remove(pid_t pid) { pids_.erase(pid); }
    // Adds all processes that have a thread with a matching name.
    void rescan();

private:
    bool matches(std::string_view name) const { return name.find(part_) != std::string_view::npos; }

    std::string part_;
    std::set<pid_t> pids_;
};

// A process and its descendants, from fork events. Events from several CPUs are not in order: the fork of a grandchild
// may arrive before the fork of the child.
class Descendants {
public:
    explicit Descendants(pid_t first) : all_{first} {}

    // Returns the newly found descendants: the child, and those of its descendants whose events arrived earlier.
    // Returns nothing if the parent is not known as a descendant.
    std::vector<pid_t> on_fork(pid_t child, pid_t parent);
    bool contains(pid_t pid) const { return all_.contains(pid); }
    void remove(pid_t pid) { all_.erase(pid); }
    // Drops earlier forks whose parent is not a descendant. To be called once a second.
    void drop_unmatched() { unmatched_.clear(); }

private:
    static constexpr size_t unmatched_max = 65536; // between two calls of drop_unmatched()

    std::set<pid_t> all_;
    std::multimap<pid_t, pid_t> unmatched_; // children by parent
};

} // namespace gpusnoop
