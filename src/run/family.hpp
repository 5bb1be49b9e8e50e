// SPDX-License-Identifier: Apache-2.0
// The processes of a program that the tool has started: those that it forks, and they in turn, become targets as they
// come.
#pragma once

#include "who/descendants.hpp"
#include "who/scope.hpp"

#include <set>
#include <sys/types.h>

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
    void tick();       // once a second
    void look_again(); // forks may have been missed

private:
    void adopt(pid_t pid);
    bool let_go(pid_t pid);

    Scope& scope_;
    Attacher* attacher_;
    int target_pids_;
    pid_t first_;
    Descendants descendants_;
    std::set<pid_t> strangers_; // which may yet turn out to be of the family
    std::set<pid_t> leaving_;   // exited, but may still have its memory
    bool limit_told_ = false;
};

} // namespace gpusnoop
