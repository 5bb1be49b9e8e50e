// SPDX-License-Identifier: Apache-2.0
// What a tool probes, as a table: which of its BPF programs serves which calls, of which library.
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

// What is attached to the kernel itself, whoever does it.

// Programs on functions of the kernel and its modules.
class KernelHooks {
public:
    virtual ~KernelHooks() = default;

    // After load, and each second: hooks what has come since. True where there was anything. Throws Error.
    virtual bool hook_new_drivers() = 0;
    // What it waits for, in a sentence; empty where there is something to trace.
    virtual std::string waits_for() const = 0;
    // What is there and cannot be traced, in a sentence; empty where there is no such thing.
    virtual std::string not_traced() const = 0;
    virtual unsigned functions() const = 0;
    virtual std::string ways() const = 0;
    virtual std::vector<std::string> summary() const = 0; // lines for -v
};

// HIP has one layer, which counts whichever of CUDA's does.
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

// A row of the table. The rows of one program add up.
struct Program {
    std::string_view name; // as in Hook
    Layers of = Layers::both;
    CallSet calls{};
    bool returns = false;          // with a return probe
    std::string_view without{};    // as in Hook
    bool always = true;            // as in Hook
    bool sampled = false;          // as in Hook; only where a call is all done at its entry
    std::string_view instead_of{}; // as in Hook; that program stands above it in the table
};

// The functions to probe, each once, and the programs that are attached to them, in the order of the table.
struct ProbePlan {
    std::vector<Probe> probes;
    std::vector<Hook> hooks;
};
ProbePlan plan_probes(std::span<const Program> programs);

} // namespace gpusnoop

// Whose stack a BPF program runs on, by the machine code that the kernel has made of it.
struct bpf_object;

namespace gpusnoop {

// True where code takes the stack from the CPU it runs on.
bool uses_private_stack(std::span<const std::byte> code, Machine machine = host);

// True where some uprobe program of a loaded object does so, or its code cannot be seen.
bool may_use_private_stack(const bpf_object* object);

} // namespace gpusnoop

// What the kernel's own statistics say of how long BPF programs run (5.8, d46edd671a14).
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
