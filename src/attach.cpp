// SPDX-License-Identifier: Apache-2.0
#include "attach.hpp"

#include "error.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <unistd.h>

namespace gpusnoop {

Attacher::Attacher(bpf_object* object, std::span<const Probe> probes, std::vector<Hook> hooks, const Scope& scope,
                   Options options)
    : hooks_(std::move(hooks)), scope_(scope), options_(std::move(options)), targets_(probes, options_.count_runtime),
      linker_(object, options_.tier, hooks_), everybody_(scope.everybody() || !options_.filter_at_attach)
{}

Attacher::~Attacher()
{
    detach(take_links());
}

Links Attacher::take_links()
{
    Links links;
    for (auto& [key, attachment] : attachments_)
        take_links(attachment, links);
    attachments_.clear();
    return links;
}

void Attacher::take_links(Attachment& from, Links& to)
{
    for (auto* list : {&from.always, &from.when_armed})
        std::ranges::move(*list, std::back_inserter(to));
}

unsigned Attacher::look_everywhere()
{
    const std::vector<pid_t> processes = scope_.processes();
    if (scope_.cgroup() && attachments_.empty() && processes.size() > options_.members_max) {
        auto uses_cuda = [this](pid_t pid) { return !targets_.files_of(pid).empty(); };
        everybody_ |= static_cast<size_t>(std::ranges::count_if(processes, uses_cuda)) > options_.members_max;
    }
    unsigned added = 0;
    for (pid_t pid : processes)
        added += look_at(pid);
    // A driver that nobody has mapped yet can have its probes before the first call. Members of a cgroup are not known
    // before they come.
    std::vector<pid_t> reach = scope_.pids();
    if (everybody_ && reach.empty())
        reach = {getpid()};
    for (pid_t pid : reach)
        for (CudaFile* file : targets_.drivers_in_reach(pid))
            added += attach(file, process_filter(pid));
    return added;
}

unsigned Attacher::look_at(pid_t pid)
{
    unsigned added = 0;
    const std::vector<CudaFile*> files = targets_.files_of(pid);
    if (options_.count_runtime)
        miss_runtime(pid, files);
    for (CudaFile* file : files) {
        added += attach(file, process_filter(pid));
        in_use_ |= !attachments_.at({file, process_filter(pid)}).refused;
    }
    if (added && !everybody_ && scope_.cgroup()) {
        std::set<pid_t> members;
        for (const auto& [key, attachment] : attachments_)
            members.insert(key.second);
        if (members.size() > options_.members_max)
            attach_to_everybody();
    }
    return added;
}

// To be told, or its empty table would look like an idle process.
void Attacher::miss_runtime(pid_t pid, const std::vector<CudaFile*>& files)
{
    constexpr size_t told_max = 16;
    if (files.empty() || runtimeless_.size() >= told_max ||
        std::ranges::any_of(files, [](const CudaFile* file) { return file->library == Library::runtime; }) ||
        !runtimeless_.insert(pid).second)
        return;
    targets_.complain(fmt::format("process {} calls the driver, but has no CUDA runtime with symbols in it: a program "
                                  "without runtime, or with a static and stripped one, whose calls --api driver counts",
                                  pid));
}

// A probe asks each of its attachments whether the process is theirs, so many of them cost more than one for all.
void Attacher::attach_to_everybody()
{
    std::set<CudaFile*> files;
    for (const auto& [key, attachment] : attachments_)
        if (!attachment.refused)
            files.insert(attachment.file);
    Links first = take_links();
    everybody_ = true;
    linker_.begin_again();
    for (CudaFile* file : files)
        attach(file, 0);
    options_.again();
    detach(std::move(first));
}

pid_t Attacher::process_filter(pid_t pid) const
{
    return everybody_ ? 0 : pid;
}

bool Attacher::attached_to(pid_t pid) const
{
    return std::ranges::any_of(attachments_, [pid](const auto& item) { return item.first.second == pid; });
}

void Attacher::forget(pid_t pid)
{
    if (pid == 0)
        return;
    Links links;
    for (auto item = attachments_.begin(); item != attachments_.end();) {
        if (item->first.second != pid) {
            ++item;
            continue;
        }
        take_links(item->second, links);
        item = attachments_.erase(item);
    }
    detach(std::move(links));
}

bool Attacher::attach(CudaFile* file, pid_t pid)
{
    auto [where, added] = attachments_.try_emplace({file, pid}, Attachment{file, pid, {}, {}, false});
    if (!added)
        return false;
    try {
        for (const Hook& hook : hooks_)
            if (hook.armed || armed_)
                link(hook, where->second);
        return true;
    } catch (const Error& error) {
        where->second.always.clear();
        where->second.when_armed.clear();
        where->second.refused = true;
        // A process that ends while it is being attached to is nobody's fault.
        if (pid == 0 || process_name(pid))
            targets_.complain(error.what());
        return false;
    }
}

void Attacher::link(const Hook& hook, Attachment& attachment)
{
    linker_.attach(hook, {*attachment.file, attachment.pid}, hook.armed ? attachment.always : attachment.when_armed);
}

void Attacher::arm(bool on)
{
    if (armed_ == on)
        return;
    armed_ = on;
    for (auto& [key, attachment] : attachments_) {
        attachment.when_armed.clear();
        if (!on || attachment.refused)
            continue;
        try {
            for (const Hook& hook : hooks_)
                if (!hook.armed)
                    link(hook, attachment);
        } catch (const Error& error) {
            verbose(error.what()); // names are worth having, not worth ending for
        }
    }
}

std::set<const CudaFile*> Attacher::attached_files() const
{
    std::set<const CudaFile*> files;
    for (const auto& [key, attachment] : attachments_)
        if (!attachment.refused)
            files.insert(key.first);
    return files;
}

unsigned Attacher::functions() const
{
    size_t functions = 0;
    for (const CudaFile* file : attached_files())
        functions += file->places.size();
    return static_cast<unsigned>(functions);
}

unsigned Attacher::files() const
{
    return static_cast<unsigned>(attached_files().size());
}

std::vector<std::string> Attacher::summary() const
{
    const std::set<const CudaFile*> files = attached_files();
    std::vector<std::string> lines{
        fmt::format("{} functions in {} files, attached by {}", functions(), files.size(), tier_name(options_.tier))};
    for (const CudaFile* file : files) {
        std::map<std::pair<uint64_t, bool>, unsigned> deltas;
        for (const Place& place : file->places)
            deltas[{place.delta, place.emulated}]++;
        std::string line = fmt::format("{}: {} of {} functions", file->path, file->places.size(),
                                       file->places.size() + file->missing.size());
        for (const auto& [placement, count] : deltas)
            line += fmt::format(", {} at +{}{}", count, placement.first,
                                placement.second ? "" : " (single-stepped by the kernel: slow)");
        if (!file->missing.empty())
            line += fmt::format("; not in this file: {}", fmt::join(file->missing, " "));
        lines.push_back(std::move(line));
    }
    return lines;
}

} // namespace gpusnoop
