// SPDX-License-Identifier: Apache-2.0
#include "attach/programs.hpp"

#include <algorithm>
#include <array>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

namespace gpusnoop {

namespace {

bool includes(Layers layers, Library library)
{
    const Layers one = library == Library::driver    ? Layers::cuda_driver
                       : library == Library::runtime ? Layers::runtime
                       : library == Library::nccl    ? Layers::nccl
                                                     : Layers::hip;
    return (static_cast<unsigned>(layers) & static_cast<unsigned>(one)) != 0;
}

bool serves(const Program& program, const Probe& probe)
{
    return includes(program.layers, probe.library) && program.calls.has(probe.row);
}

std::vector<Probe> probes_of(std::span<const Program> programs)
{
    std::vector<Probe> all;
    for (const Library library : {Library::driver, Library::runtime, Library::nccl, Library::hip}) {
        std::vector<probe_kind> kinds;
        for (int kind = 0; kind < KINDS; kind++)
            if (std::ranges::any_of(programs, [&](const Program& program) {
                    return includes(program.layers, library) && program.calls.has_kind(kind);
                }))
                kinds.push_back(static_cast<probe_kind>(kind));
        for (Probe& probe : probes(library, kinds))
            if (std::ranges::any_of(programs, [&](const Program& program) { return serves(program, probe); }))
                all.push_back(std::move(probe));
    }
    return all;
}

} // namespace

ProbePlan plan_probes(std::span<const Program> programs)
{
    ProbePlan plan{.probes = probes_of(programs), .hooks = {}};
    for (const Program& program : programs) {
        auto hook = std::ranges::find(plan.hooks, program.name, &Hook::program);
        if (hook == plan.hooks.end())
            hook = plan.hooks.insert(hook, {std::string(program.name),
                                            program.returns,
                                            {},
                                            program.always,
                                            program.without,
                                            program.sampled,
                                            program.instead_of});
        const auto general = std::ranges::find(plan.hooks, program.instead_of, &Hook::program);
        for (unsigned i = 0; i < plan.probes.size(); i++)
            if (serves(program, plan.probes[i]) && std::ranges::find(hook->probes, i) == hook->probes.end()) {
                hook->probes.push_back(i);
                if (general != plan.hooks.end())
                    std::erase(general->probes, i);
            }
    }
    std::erase_if(plan.hooks, [](const Hook& hook) { return hook.probes.empty(); });
    return plan;
}

namespace {

// add r9, gs:[this_cpu_off], emitted by emit_priv_frame_ptr() (6.13, 7d1cd70d4b16). Only programs with a private stack
// contain it, because the JIT compiler uses r9 for nothing else.
constexpr std::array adds_cpu_to_r9 = {std::byte{0x65}, std::byte{0x4c}, std::byte{0x03}, std::byte{0x0c},
                                       std::byte{0x25}};
// add x27, x27, x10, emitted by emit_percpu_ptr() (6.17). Older kernels add only constants to x27.
constexpr std::array adds_cpu_to_x27 = {std::byte{0x7b}, std::byte{0x03}, std::byte{0x0a}, std::byte{0x8b}};

// Returns the machine code of a program. Empty if the kernel hides the code (kptr_restrict) or interprets the program.
std::span<const std::byte> read_code(int program_fd, std::vector<std::byte>& room)
{
    for (;;) {
        bpf_prog_info info{};
        info.jited_prog_insns = reinterpret_cast<uintptr_t>(room.data());
        info.jited_prog_len = static_cast<uint32_t>(room.size());
        uint32_t size = sizeof(info);
        if (bpf_prog_get_info_by_fd(program_fd, &info, &size) != 0 || !info.jited_prog_insns)
            return {};
        if (info.jited_prog_len <= room.size())
            return std::span(room).first(info.jited_prog_len);
        room.resize(info.jited_prog_len);
    }
}

} // namespace

bool uses_private_stack(std::span<const std::byte> code, Machine machine)
{
    const std::span<const std::byte> adds_cpu = machine == Machine::arm64 ? std::span<const std::byte>(adds_cpu_to_x27)
                                                                          : std::span<const std::byte>(adds_cpu_to_r9);
    return !std::ranges::search(code, adds_cpu).empty();
}

bool may_use_private_stack(const bpf_object* object)
{
    std::vector<std::byte> room(16 << 10);
    bpf_program* program = nullptr;
    bpf_object__for_each_program (program, object) {
        if (bpf_program__fd(program) < 0 || std::string_view(bpf_program__section_name(program)) != "uprobe")
            continue;
        const auto code = read_code(bpf_program__fd(program), room);
        if (code.empty() || uses_private_stack(code))
            return true;
    }
    return false;
}

namespace {

constexpr uint64_t runs_min = 1000;
constexpr double stats_overhead_ns = 57; // time that the kernel reports for an empty program (Linux 6.18, AMD EPYC)

} // namespace

ProgramTimes::ProgramTimes(const bpf_object* object, const std::vector<std::string>& hooks)
    : statistics_(bpf_enable_stats(BPF_STATS_RUN_TIME))
{
    bpf_program* program = nullptr;
    bpf_object__for_each_program (program, object)
        if (bpf_program__fd(program) >= 0 && std::ranges::any_of(hooks, [&](const std::string& hook) {
                return std::string_view(bpf_program__name(program)).starts_with(hook + "_");
            }))
            programs_.push_back(bpf_program__fd(program));
}

const std::optional<double>& ProgramTimes::mean_ns()
{
    if (mean_ns_ || !statistics_)
        return mean_ns_;
    uint64_t runs = 0, ns = 0;
    for (const int fd : programs_) {
        bpf_prog_info info{};
        uint32_t size = sizeof(info);
        if (bpf_prog_get_info_by_fd(fd, &info, &size) == 0) {
            runs += info.run_cnt;
            ns += info.run_time_ns;
        }
    }
    if (runs >= runs_min) {
        mean_ns_ = std::max(static_cast<double>(ns) / static_cast<double>(runs) - stats_overhead_ns, 0.0);
        statistics_ = Fd();
    }
    return mean_ns_;
}

} // namespace gpusnoop
