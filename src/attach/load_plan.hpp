// SPDX-License-Identifier: Apache-2.0
// Fallbacks if the kernel refuses a BPF program: use the next tier (way of attaching), or leave out the program if it
// is optional.
#pragma once

#include "attach/links.hpp"
#include "attach/refusal.hpp"
#include "attach/tier.hpp"

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

class LoadPlan {
public:
    // forced: if true, no other tier is tried.
    LoadPlan(Tier best, bool forced) : best_(best), tier_(best), forced_(forced) {}

    Tier tier() const { return tier_; }
    // all: the tool's hooks. Returns the hooks that are not left out. The probes of a left-out hook move to the hook
    // that it names in Hook::instead_of.
    std::vector<Hook> hooks(std::vector<Hook> all) const;
    bool leaves_out(const std::string& hook) const { return left_out_.contains(hook); }
    std::vector<std::string> hooks_left_out(std::span<const Hook> all) const;
    // Returns the left-out programs that belong to no hook, because they are attached to kernel functions.
    std::vector<std::string> programs_left_out() const;

    // Chooses the next fallback. all: the tool's hooks. Returns false if no fallback is left; cause() then returns the
    // reason.
    bool step(const Refusal& refusal, std::span<const Hook> all);
    // Why the kernel refused the best tier. Call it only after step() has returned false.
    const Refusal& cause() const { return *first_; }

    // Messages about the fallbacks in use, after a successful load.
    std::vector<std::string> remarks(std::span<const Hook> all) const;

private:
    Tier best_;
    Tier tier_;
    bool forced_;
    std::optional<Refusal> first_;            // first refusal since the tiers were last tried from best_ on
    std::map<std::string, Refusal> left_out_; // one per left-out hook or program, by name
};

// Parallel loading of uprobe programs. Verification takes most of the start-up time, and libbpf loads programs one
// after the other. So libbpf loads an empty stub for each program first. Then several threads load the real programs
// and replace the stubs in libbpf's descriptors (dup3()).

// Installs the loader for uprobe programs. Call it once, before a BPF object is opened. confidential: result of
// is_confidentiality_lockdown().
void set_load_handler(bool confidential);

// load: function that makes libbpf load an object on this thread. Returns 0, or -errno if `load` failed or the kernel
// refused one of the programs. Unlike a serial load, this leaves no log that names the refused program and the reason.
int load_in_parallel(const std::function<int()>& load);

// Loads in parallel or serially. Throws LoadError.
void load_into_kernel(const std::function<int()>& load, bool in_parallel);

} // namespace gpusnoop
