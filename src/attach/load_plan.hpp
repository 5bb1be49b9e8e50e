// SPDX-License-Identifier: Apache-2.0
// What is tried when the kernel refuses programs: the next way of attaching, and when none is left, the tool without
// what it can do without.
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
    // forced: no other tier than this.
    LoadPlan(Tier best, bool forced) : best_(best), tier_(best), forced_(forced) {}

    Tier tier() const { return tier_; }
    // The tool's, less those whose programs are left out.
    std::vector<Hook> hooks(std::vector<Hook> all) const;
    bool leaves_out(const std::string& hook) const { return left_out_.contains(hook); }
    std::vector<std::string> hooks_left_out(std::span<const Hook> all) const;
    // Programs that no hook names, for functions of the kernel: others do their work.
    std::vector<std::string> programs_left_out() const;

    // After a refusal; all: the tool's hooks. False where there is nothing left to try: cause() says why.
    bool step(const Refusal& refusal, std::span<const Hook> all);
    // The refusal in the best tier, which decides.
    const Refusal& cause() const { return *first_; }

    // What is not as it should be, in sentences, once something has been loaded.
    std::vector<std::string> remarks(std::span<const Hook> all) const;

private:
    Tier best_;
    Tier tier_;
    bool forced_;
    std::optional<Refusal> first_;            // since the last program was left out
    std::map<std::string, Refusal> left_out_; // by hook, or program
};

// The programs on functions of libraries, verified on all CPUs at once. The verifier takes most of the time of a start,
// and libbpf has it look at one program after the other: so libbpf loads one that does nothing in the place of each,
// and those that are meant follow together, into the same descriptors.

// Once, before a BPF object is opened. confidential: see attach/refusal.hpp.
void set_load_handler(bool confidential);

// load: has libbpf load an object, on this thread. Its error, or that of a program: nobody says then which it is, and
// why, as libbpf does where it loads the programs itself.
int load_in_parallel(const std::function<int()>& load);

// The same, or as libbpf does it. Throws LoadError.
void load_into_kernel(const std::function<int()>& load, bool together);

} // namespace gpusnoop
