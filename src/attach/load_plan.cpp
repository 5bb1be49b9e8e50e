// SPDX-License-Identifier: Apache-2.0
#include "attach/load_plan.hpp"

#include "attach/refusal.hpp"
#include "base/fd.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <atomic>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cerrno>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <iterator>
#include <numeric>
#include <thread>
#include <unistd.h>
#include <vector>

namespace gpusnoop {

namespace {

const Hook* hook_of(const std::string& program, std::span<const Hook> hooks)
{
    for (const Hook& hook : hooks)
        for (std::string_view suffix : {"entry", "return", "session"})
            if (program == fmt::format("{}_{}", hook.program, suffix))
                return &hook;
    return nullptr;
}

} // namespace

std::vector<Hook> LoadPlan::hooks(std::vector<Hook> all) const
{
    for (const Hook& hook : all)
        if (leaves_out(hook.program))
            if (const auto general = std::ranges::find(all, hook.instead_of, &Hook::program); general != all.end())
                general->probes.insert(general->probes.end(), hook.probes.begin(), hook.probes.end());
    std::erase_if(all, [this](const Hook& hook) { return leaves_out(hook.program); });
    return all;
}

std::vector<std::string> LoadPlan::hooks_left_out(std::span<const Hook> all) const
{
    std::vector<std::string> hooks;
    for (const Hook& hook : all)
        if (leaves_out(hook.program))
            hooks.push_back(hook.program);
    return hooks;
}

std::vector<std::string> LoadPlan::programs_left_out() const
{
    std::vector<std::string> programs;
    for (const auto& [name, refusal] : left_out_)
        if (name == refusal.program)
            programs.push_back(name);
    return programs;
}

bool LoadPlan::step(const Refusal& refusal, std::span<const Hook> all)
{
    const Hook* refused_hook = hook_of(refusal.program, all);
    if (!refused_hook && !refusal.program.empty() && left_out_.emplace(refusal.program, refusal).second)
        return true;
    if (refused_hook && !refused_hook->instead_of.empty() && left_out_.emplace(refused_hook->program, refusal).second)
        return true;
    if (!first_)
        first_ = refusal;
    if (!refused_hook) // no hook was refused, so another tier would not help
        return false;
    if (!forced_ && tier_ != Tier::perf) {
        tier_ = static_cast<Tier>(static_cast<int>(tier_) + 1);
        return true;
    }
    const Hook* hook = hook_of(first_->program, all);
    if (hook->without.empty() || !left_out_.emplace(hook->program, *first_).second)
        return false;
    tier_ = best_;
    first_.reset();
    return true;
}

std::vector<std::string> LoadPlan::remarks(std::span<const Hook> all) const
{
    std::vector<std::string> remarks;
    if (tier_ != best_ && first_)
        remarks.push_back(
            fmt::format("attaching by {} instead of {}: {}", tier_name(tier_), tier_name(best_), first_->text()));
    for (const auto& [name, refusal] : left_out_) {
        const Hook* hook = hook_of(refusal.program, all);
        remarks.push_back(hook ? fmt::format("{}: {}", hook->without, refusal.text()) : refusal.text());
    }
    return remarks;
}

namespace {

constexpr const char* license = "Dual BSD/GPL"; // license that all BPF objects declare

struct Deferred {
    bpf_program* program;
    std::vector<bpf_insn> code;
    bpf_prog_load_opts options;
    int error = 0;

    // Loads the program. libbpf's descriptor of the stub then refers to the loaded program.
    void load()
    {
        const Fd loaded(bpf_prog_load(BPF_PROG_TYPE_KPROBE, bpf_program__name(program), license, code.data(),
                                      code.size(), &options));
        error = loaded && dup3(loaded.get(), bpf_program__fd(program), O_CLOEXEC) >= 0 ? 0 : -errno;
    }
};

// Programs whose loading load_in_parallel() has deferred on this thread. Null at other times; libbpf then loads each
// program immediately.
std::vector<Deferred>*& current()
{
    thread_local std::vector<Deferred>* all = nullptr;
    return all;
}

// Called from C, so it must not throw.
int prepare(bpf_program* program, bpf_prog_load_opts* options, long confidential)
try {
    const bpf_insn* const given = bpf_program__insns(program);
    std::vector<bpf_insn> code(given, given + bpf_program__insn_cnt(program));
    if (confidential)
        restore_user_reads(code);
    if (!current() || options->fd_array) // cannot defer with fd_array: libbpf frees it before load_all()
        return confidential ? bpf_program__set_insns(program, code.data(), code.size()) : 0;
    Deferred later{program, std::move(code), *options};
    later.options.log_level = 0;
    // Set here, because libbpf sets it in `options` only after this function returns.
    later.options.expected_attach_type = bpf_program__expected_attach_type(program);
    bpf_insn nothing[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
    };
    if (const int error = bpf_program__set_insns(program, nothing, std::size(nothing)))
        return error;
    options->func_info = options->line_info = nullptr;
    options->func_info_cnt = options->line_info_cnt = 0;
    current()->push_back(std::move(later));
    return 0;
} catch (const std::bad_alloc&) {
    return -ENOMEM;
}

// Starts with the longest programs, so that the threads end at about the same time.
void load_all(std::vector<Deferred>& all)
{
    std::vector<size_t> order(all.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return all[i].code.size(); });
    std::atomic<size_t> next = 0;
    auto work = [&] {
        for (size_t i; (i = next++) < order.size();)
            all[order[i]].load();
    };
    std::vector<std::jthread> others;
    try {
        while (others.size() + 1 < std::min<size_t>(all.size(), allowed_cpus(getpid())))
            others.emplace_back(work);
    } catch (const std::exception&) {
        // A limit on tasks or memory was reached. The threads already started do all the work.
    }
    work();
}

} // namespace

void set_load_handler(bool confidential)
{
    LIBBPF_OPTS(libbpf_prog_handler_opts, options);
    options.cookie = confidential;
    options.prog_prepare_load_fn = prepare;
    libbpf_register_prog_handler("uprobe", BPF_PROG_TYPE_KPROBE, static_cast<bpf_attach_type>(0), &options);
}

int load_in_parallel(const std::function<int()>& load)
{
    std::vector<Deferred> all;
    current() = &all;
    const int error = load();
    current() = nullptr;
    if (error)
        return error;
    load_all(all);
    const auto refused = std::ranges::find_if(all, [](const Deferred& one) { return one.error != 0; });
    return refused == all.end() ? 0 : refused->error;
}

void load_into_kernel(const std::function<int()>& load, bool in_parallel)
{
    const LoadLog log;
    if (const int error = in_parallel ? load_in_parallel(load) : load())
        throw LoadError(refusal_of(-error, log.text()));
}

} // namespace gpusnoop
