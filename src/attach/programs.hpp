// SPDX-License-Identifier: Apache-2.0
// Table of a tool's BPF programs: each row names a program, the calls that it handles, and their library.
#pragma once

#include "attach/calling_convention.hpp"
#include "attach/links.hpp"
#include "attach/probes.hpp"
#include "base/fd.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// Interface of programs that are attached to functions of the kernel and its modules.
class KernelHooks {
public:
    virtual ~KernelHooks() = default;

    // Attaches to drivers that were loaded since the last call, and returns true if there were any. Call it after the
    // BPF object is loaded, and then every second. Throws Error.
    virtual bool hook_new_drivers() = 0;
    // Message about the driver that the tool waits for; empty if there is something to trace.
    virtual std::string waits_for() const = 0;
    // Message about drivers that cannot be traced; empty if there are none.
    virtual std::string not_traced() const = 0;
    virtual unsigned functions() const = 0;
    virtual std::string ways() const = 0;
    virtual std::vector<std::string> summary() const = 0; // lines for -v
};

// API layers. HIP has a single layer. It is counted no matter which CUDA layer is counted.
enum class Layers : uint8_t {
    none = 0,
    cuda_driver = 1,
    runtime = 2,
    nccl = 4,
    hip = 8,
    driver = cuda_driver | hip,
    runtime_and_hip = runtime | hip,
    both = driver | runtime,
};

// Row of a tool's table of BPF programs. A program may have several rows. The members after `calls` mean the same as in
// Hook.
struct Program {
    std::string_view name; // Hook::program
    Layers layers = Layers::both;
    CallSet calls{};
    bool returns = false;
    std::string_view without{};
    bool always = true;
    bool sampled = false;          // allowed only if `returns` is false
    std::string_view instead_of{}; // the program named here must have an earlier row in the table
};

// The functions to probe, without duplicates, and the programs that handle them. Each program has one hook, in the
// order of the tool's table. Programs that handle none of the functions are left out.
struct ProbePlan {
    std::vector<Probe> probes;
    std::vector<Hook> hooks;
};
ProbePlan plan_probes(std::span<const Program> programs);

} // namespace gpusnoop

// Detection of private stacks in the JIT-compiled code of BPF programs. Each CPU has one private stack per program.
struct bpf_object;

namespace gpusnoop {

// True if the code uses a private stack.
bool uses_private_stack(std::span<const std::byte> code, Machine machine = host);

// True if a uprobe program of a loaded object uses a private stack, or if its code cannot be read.
bool may_use_private_stack(const bpf_object* object);

} // namespace gpusnoop

struct bpf_object;

namespace gpusnoop {

// Measures the run time of BPF programs with the kernel's statistics (BPF_ENABLE_STATS, Linux 5.8, commit
// d46edd671a14).
class ProgramTimes {
public:
    // Starts to measure the programs of these hooks (Hook::program). During the measurement, each run of a program
    // takes about 50 ns longer.
    ProgramTimes(const bpf_object* object, const std::vector<std::string>& hooks);

    // Returns the mean run time in ns. nullopt if the programs ran too rarely so far, or if the kernel has no
    // statistics. The first call that returns a mean ends the measurement.
    const std::optional<double>& mean_ns();

private:
    std::vector<int> programs_; // descriptors, owned by libbpf
    Fd statistics_;
    std::optional<double> mean_ns_;
};

} // namespace gpusnoop
