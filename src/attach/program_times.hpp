// SPDX-License-Identifier: Apache-2.0
// What the kernel's own statistics say of how long BPF programs run (5.8, d46edd671a14).
#pragma once

#include "base/fd.hpp"

#include <optional>
#include <string>
#include <vector>

struct bpf_object;

namespace gpusnoop {

class ProgramTimes {
public:
    // Of the programs of these hooks (Hook::program). While it counts, each run takes some 50 ns more.
    ProgramTimes(const bpf_object* object, const std::vector<std::string>& hooks);

    // Mean of a run, in ns; nullopt: too few so far, or the kernel does not say. Once it is known, nothing is counted
    // any more.
    const std::optional<double>& mean_ns();

private:
    std::vector<int> programs_; // not owned
    Fd counting_;
    std::optional<double> mean_ns_;
};

} // namespace gpusnoop
