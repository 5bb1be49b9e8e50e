// SPDX-License-Identifier: Apache-2.0
// Attacher: decides which files are probed for which processes, attaches the probes, and owns the BPF links.
#pragma once

#include "attach/links.hpp"
#include "attach/scan_queue.hpp"
#include "attach/targets.hpp"
#include "who/scope.hpp"

#include "bpf/shared/probe.h"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

struct bpf_object;

namespace gpusnoop {

class Attacher {
public:
    struct Options {
        Tier tier = Tier::session;
        bool count_runtime = false;         // also count calls of the CUDA runtime; see Targets::Targets()
        bool filter_at_attach = true;       // if false, all probes are system-wide (multi_filters_processes())
        std::function<void()> step = [] {}; // called repeatedly during long operations; may throw to abort
        // Called before probes are attached to a file.
        std::function<void(size_t functions, const std::string& path)> attaching{};
        bool by_process = false; // attach per process even without a process filter; needed to pause() one process
        // Maximum number of processes with per-process probes. If more processes need probes, the probes become
        // system-wide. Applies only if processes may join the scope later.
        size_t members_max = 16;
        std::function<void(uint64_t id)> release{}; // resumes a process that scan_held() queued
        // Called with each phase of the switch from per-process to system-wide probes.
        std::function<void(attach_phase)> set_phase;
        std::function<void(uint64_t)> set_forwarding_files{}; // sets forwarding_files of bpf/base/probe.bpf.h
        // If true, the BPF programs filter the system-wide probes by process (bpf/base/probe.bpf.h).
        bool filter_second = false;
        // Returns false if system-wide probes would harm untraced processes.
        std::function<bool()> may_attach_system_wide = [] { return true; };
    };

    // Construct it after the BPF object is opened and before it is loaded, because the constructor chooses which
    // programs are loaded and their attach types.
    Attacher(bpf_object* object, std::span<const Probe> probes, std::vector<Hook> hooks, const Scope& scope,
             Options options);
    ~Attacher();
    Attacher(const Attacher&) = delete;
    Attacher& operator=(const Attacher&) = delete;

    // Queues a process that may have mapped a new file. attach_waiting() scans the process once, however often it was
    // queued.
    void scan(pid_t pid);
    // Queues a process that is paused in a system call (Targets::Held). After its scan has completed and the probes are
    // attached, Options::release is called with Held::id.
    void scan_held(Targets::Held held) { held_.push_back(std::move(held)); }
    struct Attached {
        bool added = false;        // true if probes were attached to a file
        std::optional<pid_t> user; // the last process found to map a probed file
    };
    // Attaches to the files found so far, and starts the queued scans that are due. Does not wait for scans to finish.
    // Call it again when descriptor() is readable.
    Attached attach_waiting();
    int descriptor() const { return targets_.descriptor(); }
    // Scans all processes in scope, and the installed drivers that they would load. attach_waiting() repeats scans that
    // do not finish in time. The BPF programs need not be loaded yet.
    void scan_at_start();
    // Attaches to the files that scan_at_start() found.
    void attach_at_start();
    // Queues all processes in scope for attach_waiting().
    void scan_all();
    // Detaches from files that no process uses any more.
    void release_unused();

    // Detaches from files that another program has opened for writing or has written. If we hold a lease on the file,
    // the kernel blocks the writer until the probes are detached. Called by attach_waiting(). Other long operations
    // must call this function, too.
    void yield_to_writers(bool thorough = false);
    // Returns the new messages about overwritten files.
    std::vector<std::string> drain_remarks() { return std::exchange(remarks_, {}); }

    // Processes known to map a file whose calls are counted.
    const std::set<pid_t>& users() const { return users_; }
    // Call it after the exit or exec of the process.
    void remove_user(pid_t pid) { users_.erase(pid); }

    // Call it when the main thread of the process has exited while other threads run.
    void main_thread_exited(pid_t pid);
    // Call it when another thread has called exec() and thereby become the main thread.
    void main_thread_replaced(pid_t pid);
    // Detaches the probes of an exited process.
    void forget(pid_t pid);
    // True if the probes are system-wide. The BPF programs then filter by process.
    bool is_system_wide() const { return system_wide_; }
    // True if per-process probes are attached to this process.
    bool attached_to(pid_t pid) const;

    // Attaches or detaches the hooks that are attached only on demand (Hook::always is false).
    void attach_name_probes(bool on);
    bool name_probes_attached() const { return name_probes_attached_; }

    // pause() detaches the sampled probes (Hook::sampled) of a group, and waits for an RCU grace period. resume()
    // attaches them again. A group is one process or, if the probes are system-wide, all processes.
    void pause(pid_t group);
    void resume(pid_t group);
    pid_t group_of(pid_t pid) const { return process_filter(pid); }

    const Targets& targets() const { return targets_; }
    // Messages about files that could not be probed. They are not errors, because any process can create such a file.
    const std::vector<std::string>& complaints() const { return targets_.complaints(); }
    bool in_use() const { return in_use_; } // true if any process has mapped a probed file
    // Message about the processes whose first scan timed out; empty if there are none.
    const std::string& unscanned() const { return unscanned_; }
    std::string_view library() const; // library that a process must map to be traced, for messages
    size_t unreadable() const { return targets_.unreadable(); } // processes whose mappings the tool cannot access
    size_t unreadable_files() const { return targets_.unreadable_files(); }
    unsigned functions() const; // number of probed functions in all files
    unsigned files() const;
    std::vector<std::string> summary() const; // lines for -v
    Tier tier() const { return options_.tier; }

private:
    // Thrown if a program opens a file for writing while probes are being attached to the file.
    struct FileSuspended {};
    struct Attachment {
        CudaFile* file;
        pid_t pid; // 0: every process
        Links always;
        Links sampled;
        Links name_probes;
        bool refused = false;
    };

    void scan_due();
    void note_driver(const CudaFile& file, const Targets::Found& found);
    void update_forwarding();
    Attached apply(const Targets::Found& found);
    void report_missing_runtime(pid_t pid, const std::vector<CudaFile*>& files);
    bool attach_without_main_thread(pid_t pid);
    void attach_system_wide();
    bool attach(CudaFile* file, pid_t pid);
    bool link_all(Attachment& attachment);
    void attach_again(const Targets::Found& found);
    void report_suspended(CudaFile* file, bool was_attached);
    void step();
    pid_t process_filter(pid_t pid) const;
    void link(const Hook& hook, Attachment& attachment);
    static Links& links_of(const Hook& hook, Attachment& attachment);
    // True if processes to trace may be added later.
    bool is_open() const { return scope_.is_open() || options_.by_process; }
    void check_descriptors(const CudaFile& file) const;
    std::set<const CudaFile*> attached_files() const;
    Links extract_links();
    void extract_links_if(const std::function<bool(const CudaFile*, pid_t)>& wanted, Links& to);
    static void extract_links(Attachment& from, Links& to);

    std::vector<Hook> hooks_;
    const Scope& scope_;
    Options options_;
    Targets targets_;
    ScanQueue scan_queue_;
    std::deque<Targets::Held> held_; // queued by scan_held()
    Linker linker_;
    Library counted_; // library whose calls are counted; with Options::count_runtime, runtime calls are counted, too
    bool system_wide_;
    std::optional<std::vector<Targets::Found>> found_at_start_;
    std::map<std::pair<const CudaFile*, pid_t>, Attachment> attachments_;
    std::set<pid_t> users_;
    std::set<pid_t> paused_;              // groups paused by pause(); see group_of()
    std::set<pid_t> without_runtime_;     // processes reported by report_missing_runtime()
    std::set<pid_t> without_main_thread_; // processes reported by attach_without_main_thread()
    bool name_probes_attached_ = false;
    std::set<const CudaFile*> forwarding_; // drivers that share a process with another driver
    // Processes that may soon map a second driver, each with the time until which the second one is expected.
    // Process 0 means any process.
    std::map<pid_t, ScanQueue::Clock::time_point> second_driver_until_;
    bool in_use_ = false;
    std::string unscanned_;
    std::vector<std::string> remarks_;
    const CudaFile* linking_ = nullptr; // file to which probes are being attached; null: none
    bool switching_ = false;            // true while attach_system_wide() holds links that are not in attachments_
};

} // namespace gpusnoop
