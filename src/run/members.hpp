// SPDX-License-Identifier: Apache-2.0
// Tracks processes that enter or leave the scope during a run: by name (-n), by cgroup (-c), or as descendants of a
// program that the tool started. Scans new processes for CUDA libraries, and forgets exited ones.
#pragma once

#include "who/processes.hpp"
#include "who/scope.hpp"

#include <optional>
#include <set>
#include <string_view>
#include <sys/types.h>
#include <vector>

struct bpf_object;

namespace gpusnoop {

class Attacher;

// A started program and its descendants, which become targets when they are forked.
class Family {
public:
    // object: must be loaded; its map target_pids must have room for targets_max entries. attacher: null if the tool
    // has no user-space probes.
    Family(Scope& scope, const bpf_object* object, Attacher* attacher);

    static constexpr uint32_t targets_max = 16384;
    // Sizes the map target_pids. Call between open and load.
    static void make_room(bpf_object* object);

    void forked(pid_t child, pid_t parent);
    // Call if a process that is not a target has mapped a CUDA library.
    void stranger_mapped(pid_t pid);
    void exited(pid_t pid);
    void tick();   // once a second
    void rescan(); // call if fork events may have been lost

private:
    void adopt(pid_t pid);
    bool forget_if_exited(pid_t pid);

    Scope& scope_;
    Attacher* attacher_;
    int target_pids_;
    pid_t first_;
    Descendants descendants_;
    // processes that mapped a CUDA library and are not targets; they may be descendants whose fork is not reported yet
    std::set<pid_t> strangers_;
    std::set<pid_t> leaving_; // exited processes whose memory may not be released yet
    bool warned_limit_ = false;
};

} // namespace gpusnoop

struct bpf_object;

namespace gpusnoop {

class Attacher;

class Members {
public:
    // object: must be loaded. attacher: null if the tool has no user-space probes. started: true if the tool started
    // the target program.
    Members(Scope& scope, const bpf_object* object, Attacher* attacher, bool started);

    void mapped(pid_t pid); // call if the process has mapped a CUDA library
    void forked(pid_t pid, pid_t parent);
    void named(pid_t pid, std::string_view name, bool is_exec);
    void exited(pid_t pid);
    void tick(); // once a second

    std::set<pid_t> exits_missed() const; // processes that were in the cgroup at the last scan, and have exited
    void rescan();                        // call if events of MappingWatch may have been lost

    std::vector<pid_t> users() const; // processes in scope that map a probed library

private:
    void forget_leaving();
    void find_moved_in();

    Scope& scope_;
    Attacher* attacher_;
    std::optional<Family> family_;
    std::set<pid_t> members_; // processes in the cgroup at the last scan
    std::set<pid_t> leaving_; // exited processes whose memory may not be released yet
};

} // namespace gpusnoop
