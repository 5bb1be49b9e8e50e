// SPDX-License-Identifier: Apache-2.0
// Processes come under what was asked for, and leave it, while a run goes on: by a name (-n), by a cgroup (-c), or as
// children of a program that the tool has started. Who comes is looked at for CUDA libraries; who leaves is forgotten.
#pragma once

#include "who/processes.hpp"
#include "who/scope.hpp"

#include <optional>
#include <set>
#include <string_view>
#include <sys/types.h>
#include <vector>

// The processes of a program that the tool has started: those that it forks, and they in turn, become targets as they
// come.
struct bpf_object;

namespace gpusnoop {

class Attacher;

class Family {
public:
    // object: loaded, with target_pids of targets_max entries. attacher: null where nothing in user memory is probed.
    Family(Scope& scope, const bpf_object* object, Attacher* attacher);

    static constexpr uint32_t targets_max = 16384;
    // Between open and load.
    static void make_room(bpf_object* object);

    void forked(pid_t child, pid_t parent);
    // One that is not a target, so far, has mapped a CUDA library.
    void stranger_mapped(pid_t pid);
    void exited(pid_t pid);
    void tick();   // once a second
    void rescan(); // forks may have been missed

private:
    void adopt(pid_t pid);
    bool forget_if_exited(pid_t pid);

    Scope& scope_;
    Attacher* attacher_;
    int target_pids_;
    pid_t first_;
    Descendants descendants_;
    std::set<pid_t> strangers_; // which may yet turn out to be of the family
    std::set<pid_t> leaving_;   // exited, but may still have its memory
    bool warned_limit_ = false;
};

} // namespace gpusnoop

struct bpf_object;

namespace gpusnoop {

class Attacher;

class Members {
public:
    // object: loaded. attacher: null where nothing in user memory is probed. started: the tool has begun the program.
    Members(Scope& scope, const bpf_object* object, Attacher* attacher, bool started);

    void mapped(pid_t pid); // a CUDA library
    void forked(pid_t pid, pid_t parent);
    void named(pid_t pid, std::string_view name, bool is_exec);
    void exited(pid_t pid);
    void tick(); // once a second

    std::set<pid_t> exits_missed() const; // as far as can be told
    void rescan();                        // what the watch tells of may have been missed

    std::vector<pid_t> users() const; // those asked for that have mapped what counts

private:
    void forget_leaving();
    void find_moved_in();

    Scope& scope_;
    Attacher* attacher_;
    std::optional<Family> family_;
    std::set<pid_t> members_; // of the cgroup, as of the last look
    std::set<pid_t> leaving_; // exited, but may still have its memory
};

} // namespace gpusnoop
