// SPDX-License-Identifier: Apache-2.0
// Probe table x targets -> links: which files are probed, and for which processes.
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
        bool count_runtime = false;         // see Targets
        bool filter_at_attach = true;       // false where the kernel's own pid filter is not to be trusted
        std::function<void()> step = [] {}; // between what takes long: may throw what ends all of it
        std::function<void(size_t functions, const std::string& path)> attaching{}; // before each file
        bool by_process = false; // also where everybody is asked for: pause() is for one of them then
        size_t members_max = 16; // of those that may become more, attached to one by one
        std::function<void(uint64_t id)> release{};           // resumes a process of scan_held()
        std::function<void(attach_phase)> set_phase;          // as everything is attached again (bpf/shared/probe.h)
        std::function<void(uint64_t)> set_forwarding_files{}; // sets forwarding_files (bpf/base/probe.bpf.h)
        bool filter_second = false;                           // the programs filter by process (bpf/base/probe.bpf.h)
        std::function<bool()> may_attach_system_wide = [] { return true; }; // harms none that is not asked for
    };

    // To be called between open and load: chooses the programs and their attach types.
    Attacher(bpf_object* object, std::span<const Probe> probes, std::vector<Hook> hooks, const Scope& scope,
             Options options);
    ~Attacher();
    Attacher(const Attacher&) = delete;
    Attacher& operator=(const Attacher&) = delete;

    // Process that may have mapped something new: looked at by attach_waiting(), once for all it has mapped by then.
    void scan(pid_t pid);
    // A process held in a system call: released by its id once its new file, or all that it maps, has probes.
    void scan_held(Targets::Held held) { held_.push_back(std::move(held)); }
    struct Attached {
        bool added = false;        // a file was attached
        std::optional<pid_t> user; // the last process with a file that is
    };
    // Attaches what has been found in those that are due, and has the next ones looked at. Waits for nothing: there is
    // more to attach when descriptor() is readable.
    Attached attach_waiting();
    int descriptor() const { return targets_.descriptor(); }
    // Looks at all processes, or those asked for, and the drivers that they would load. What takes too long is left to
    // attach_waiting(). The programs need not be loaded yet.
    void scan_at_start();
    // Attaches what that has found.
    void attach_at_start();
    // The same, all left to attach_waiting().
    void scan_all();
    // Frees what nobody uses any more.
    void release_unused();

    // Detaches from files that writers have opened or written, and lets the writers continue: they wait for that. To be
    // called wherever it may take long until attach_waiting() is.
    void yield_to_writers(bool thorough = false);
    // Sentences about files that were overwritten, each once.
    std::vector<std::string> drain_remarks() { return std::exchange(remarks_, {}); }

    // Processes that have mapped a file whose calls count, as far as they have been looked at.
    const std::set<pid_t>& users() const { return users_; }
    // The process has ended, or is another program: it has mapped nothing yet.
    void remove_user(pid_t pid) { users_.erase(pid); }

    // The main thread of the process has exited, and others run.
    void main_thread_exited(pid_t pid);
    // Another thread has called exec() and has taken the main thread's place.
    void main_thread_replaced(pid_t pid);
    // The process has ended: frees what was attached to it alone.
    void forget(pid_t pid);
    // Every process has the probes, wanted or not: the program tells them apart.
    bool is_system_wide() const { return system_wide_; }
    // The process has probes of its own.
    bool attached_to(pid_t pid) const;

    // Attaches or detaches the hooks that are not armed from the start.
    void attach_name_probes(bool on);
    bool name_probes_attached() const { return name_probes_attached_; }

    // Of one process, or of all where everybody has them (pid: group_of()): takes the probes away whose calls are
    // sampled (Hook::sampled), or brings them back. The first waits for a grace period of the kernel.
    void pause(pid_t group);
    void resume(pid_t group);
    pid_t group_of(pid_t pid) const { return process_filter(pid); }

    const Targets& targets() const { return targets_; }
    // Files that could not be probed, and why: one that a process made up must not end the run.
    const std::vector<std::string>& complaints() const { return targets_.complaints(); }
    bool in_use() const { return in_use_; }                     // some process mapped a probed file
    const std::string& unscanned() const { return unscanned_; } // who there was no time to look at first; empty: nobody
    std::string_view library() const;                           // without which there is nothing to trace
    size_t unreadable() const { return targets_.unreadable(); } // processes
    size_t unreadable_files() const { return targets_.unreadable_files(); }
    unsigned functions() const; // attached ones, over all files
    unsigned files() const;
    std::vector<std::string> summary() const; // lines for -v
    Tier tier() const { return options_.tier; }

private:
    // Thrown between the links of a file that is being attached to, where a writer opens it.
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
    bool is_open() const { return scope_.is_open() || options_.by_process; } // who counts is not known yet
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
    std::deque<Targets::Held> held_; // to be searched
    Linker linker_;
    Library counted_; // whose calls count, beside the runtime's
    bool system_wide_;
    std::optional<std::vector<Targets::Found>> found_at_start_;
    std::map<std::pair<const CudaFile*, pid_t>, Attachment> attachments_;
    std::set<pid_t> users_;
    std::set<pid_t> paused_;              // groups
    std::set<pid_t> without_runtime_;     // that were complained of
    std::set<pid_t> without_main_thread_; // the same
    bool name_probes_attached_ = false;
    std::set<const CudaFile*> forwarding_; // drivers that share a process with another one
    std::map<pid_t, ScanQueue::Clock::time_point>
        second_driver_until_; // processes with a new driver, which may map another one
    bool in_use_ = false;
    std::string unscanned_;
    std::vector<std::string> remarks_;
    const CudaFile* linking_ = nullptr; // the file that probes are being attached to
    bool switching_ = false;            // of some links, only a local variable knows
};

} // namespace gpusnoop
