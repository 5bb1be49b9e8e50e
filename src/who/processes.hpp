// SPDX-License-Identifier: Apache-2.0
// Names, owners and threads of process images (see `image` in bpf/shared/process.h). Data of an exited process is kept
// until forget() is called.
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

// Precision of a process's counts, which are estimates if its calls were counted only part of the time.
struct Sampled {
    double percent = 100;          // percentage of the process's CPU time during which calls were counted
    std::optional<double> error{}; // error in percent that is not exceeded in 19 of 20 reports
};

struct ProcessInfo {
    uint64_t start_ns = 0; // CLOCK_BOOTTIME; 0: unknown
    uint64_t seen_ns = 0;  // time at which the process was first seen, CLOCK_MONOTONIC
    bool replaced = false; // true if exec has replaced the image
    uint32_t ns_pid = 0;   // pid in the process's innermost pid namespace; 0: unknown
    cgroups cgroup{};      // cgroups of the process at its first call
    std::string comm;      // the main thread's name; empty: unknown
};

class Processes {
public:
    // waits: see Reader::Reader().
    Processes(int map_fd, const std::string& host_root, WaitBudget* waits = nullptr)
        : map_fd_(map_fd), cgroup_mounts_(cgroup_mounts(host_root)), attribution_(host_root, waits),
          command_lines_(waits)
    {}

    void learn(const process_record& record);
    // Returns the image that a process runs. If the process has made no traced call yet, reads its data from /proc.
    ImageId track(uint32_t pid);

    const ProcessInfo& info(const ImageId& image);
    // Returns a thread's name, or its last known name if the thread has exited. Empty if unknown.
    const std::string& thread_name(const ImageId& image, uint32_t tid);
    // Stores a thread's name, which the kernel side sends at the thread's first call and at its exit (ended: true).
    // comm is padded with zeros.
    void learn_thread(const ImageId& image, uint32_t tid, std::span<const char, 16> comm, bool ended);
    // Sets the BPF map of thread names (bpf/base/call.bpf.h), which has up to thread_names_max entries.
    void read_threads_from(int map_fd) { threads_fd_ = map_fd; }
    static constexpr uint32_t thread_names_max = 4096;

    // Returns the command line; empty if unknown. The process controls the text, so escape it with printable() for
    // output.
    const std::string& command_line(const ImageId& image);
    // ids: the cgroups in which a call was made. If they are 0, the cgroups at the process's first call are used.
    const Owner& owner(const ImageId& image, const cgroups& ids);

    // Sets the time since which all calls are traced. boot_ns: CLOCK_BOOTTIME.
    void set_tracing_start(uint64_t boot_ns) { began_ns_ = boot_ns; }
    // True if one of the images may have made calls before tracing began. These calls are not recorded.
    bool any_began_before_tracing(const std::set<ImageId>& images) const;

    // Sets the processes whose counts are estimates, and their precision. The keys are pids.
    void set_sampled(std::map<uint32_t, Sampled> sampled) { sampled_ = std::move(sampled); }
    // Returns the precision of the process that was sampled least; nullopt if no process has estimates.
    std::optional<Sampled> sampled(const std::set<ImageId>& images) const;

    // Must be called when a process has called exec. Marks its earlier images as replaced. Returns false if none are
    // known.
    bool on_exec(uint32_t pid, uint64_t time_ns);

    // Makes info() and thread_name() read names again, because names change (prctl, exec). Forgets threads whose names
    // were not used since the last refresh().
    void refresh();
    // pids: on entry, processes that may have exited. This function adds processes whose first record was read only
    // after their exit. It returns the images of these processes that have ended, and removes all processes without a
    // running image from `pids`.
    std::vector<ImageId> extract_exited(std::set<uint32_t>& pids);
    std::set<uint32_t> pids() const; // pids of all known images
    // Returns the pids of known processes that have exited, even if another process now has the pid.
    std::set<pid_t> exited() const;
    std::vector<ImageId> images() const; // current image of each process that is not known to have exited
    void forget(const std::set<ImageId>& images);

private:
    // True if the image has ended, even if its pid was reused or belongs to a zombie.
    bool has_exited(const ImageId& image);
    bool same_process(const ImageId& image);

    bool began_before_tracing(const ProcessInfo& info) const;

    struct Thread {
        std::string name;
        bool fresh = false; // true if the name was read since the last refresh()
        bool used = true;   // true if the name was used since the last refresh()
    };

    int map_fd_;
    std::vector<CgroupMount> cgroup_mounts_;
    int threads_fd_ = -1;
    std::map<std::pair<ImageId, uint32_t>, Thread> threads_; // the key is image and tid
    Attribution attribution_;
    CommandLines command_lines_;
    std::map<uint32_t, Sampled> sampled_;
    uint64_t began_ns_ = 0;
    std::set<uint32_t> executed_; // pids of processes that began before tracing and have called exec since
    std::map<ImageId, ProcessInfo> known_;
    std::set<ImageId> learned_; // images whose process_record was read since the last extract_exited()
    std::set<ImageId> fresh_;   // images whose names were read since the last refresh()
};

// Processes that -n selects: those with a thread whose name contains the text, or contained it earlier. A new thread
// needs no check, because it inherits the name of the thread that created it.
class NamedProcesses {
public:
    explicit NamedProcesses(std::string part) : part_(std::move(part)) {}

    const std::set<pid_t>& pids() const { return pids_; }
    bool contains(pid_t pid) const { return pids_.contains(pid); }

    // Call when a thread of the process was renamed to `name`. Returns true if this adds the process to pids().
    bool on_rename(pid_t pid, std::string_view name);
    // Call when a process was created; it inherits the name of the thread that created it. Returns true if this adds
    // the child to pids().
    bool on_fork(pid_t child);
    // Call when the process has called exec; its only thread is now called `name`. Returns true if this removes the
    // process from pids().
    bool on_exec(pid_t pid, std::string_view name);
    void remove(pid_t pid) { pids_.erase(pid); }
    // Adds all processes that have a thread with a matching name.
    void rescan();

private:
    bool matches(std::string_view name) const { return name.find(part_) != std::string_view::npos; }

    std::string part_;
    std::set<pid_t> pids_;
};

// A process and its descendants, from fork events. The events of different CPUs are not ordered: a grandchild's event
// may arrive before the child's.
class Descendants {
public:
    explicit Descendants(pid_t first) : all_{first} {}

    // Returns the newly found descendants: the child, and the child's descendants whose events arrived earlier. Empty
    // if the parent is not a known descendant.
    std::vector<pid_t> on_fork(pid_t child, pid_t parent);
    bool contains(pid_t pid) const { return all_.contains(pid); }
    void remove(pid_t pid) { all_.erase(pid); }
    // Drops fork events whose parent is still not a known descendant. Must be called once a second.
    void drop_unmatched() { unmatched_.clear(); }

private:
    static constexpr size_t unmatched_max = 65536; // maximum number of entries between two calls of drop_unmatched()

    std::set<pid_t> all_;
    std::multimap<pid_t, pid_t> unmatched_; // children by parent
};

} // namespace gpusnoop
