// SPDX-License-Identifier: Apache-2.0
#include "attach/attach.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/text.hpp"
#include "proc/threads.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <new>
#include <unistd.h>
#include <utility>

namespace gpusnoop {
namespace {

using namespace std::chrono_literals;

constexpr ScanQueue::Clock::duration tick_budget = 50ms; // maximum per attach_waiting(), so that reports are on time
// Timeout of the scans at startup. If no scan makes progress for this long, or after five times as long in total,
// tracing begins without the unfinished scans. Calls of a process are lost until its scan is finished. The timeout is
// longer than the hang timeout of helpers, so that a scan can be repeated after a file has made a helper hang.
constexpr std::chrono::milliseconds stall_timeout = 4s;
// A driver that forwards calls to a second driver is expected to load it within this time. Most load it at once.
constexpr ScanQueue::Clock::duration second_driver_window = 2s;

} // namespace

Attacher::Attacher(bpf_object* object, std::span<const Probe> probes, std::vector<Hook> hooks, const Scope& scope,
                   Options options)
    : hooks_(std::move(hooks)), scope_(scope), options_(std::move(options)), targets_(probes, options_.count_runtime),
      linker_(object, options_.tier, hooks_, [this] { step(); }),
      counted_(std::ranges::find(probes, Library::nccl, &Probe::library) == probes.end() ? Library::driver
                                                                                         : Library::nccl),
      system_wide_((scope.is_unfiltered() && !options_.by_process) || !options_.filter_at_attach)
{}

Attacher::~Attacher()
{
    try {
        detach(extract_links());
    } catch (const std::bad_alloc&) {
        // There is no memory for the list of links, so the destructors of the attachments detach the links one by one.
    }
}

std::string_view Attacher::library() const
{
    return counted_ == Library::nccl ? "NCCL library (libnccl.so*)"
                                     : "CUDA or HIP driver (libcuda.so*, libamdhip64.so*)";
}

Links Attacher::extract_links()
{
    Links links;
    for (auto& [key, attachment] : attachments_)
        extract_links(attachment, links);
    attachments_.clear();
    return links;
}

void Attacher::extract_links(Attachment& from, Links& to)
{
    for (auto* list : {&from.always, &from.sampled, &from.name_probes}) {
        std::ranges::move(*list, std::back_inserter(to));
        list->clear();
    }
}

void Attacher::extract_links_if(const std::function<bool(const CudaFile*, pid_t)>& wanted, Links& to)
{
    for (auto item = attachments_.begin(); item != attachments_.end();) {
        if (!wanted(item->first.first, item->first.second)) {
            ++item;
            continue;
        }
        extract_links(item->second, to);
        item = attachments_.erase(item);
    }
}

void Attacher::scan(pid_t pid)
{
    scan_queue_.add(pid, ScanQueue::Clock::now());
}

void Attacher::scan_all()
{
    std::ranges::for_each(scope_.processes(), [this](pid_t pid) { scan(pid); });
}

void Attacher::scan_due()
{
    while (targets_.ready()) {
        if (!held_.empty()) {
            targets_.scan(std::move(held_.front()));
            held_.pop_front();
            continue;
        }
        const auto pid = scan_queue_.next(ScanQueue::Clock::now());
        if (!pid)
            return;
        targets_.scan(*pid);
    }
}

Attacher::Attached Attacher::attach_waiting()
{
    Attached all;
    const auto begin = ScanQueue::Clock::now();
    yield_to_writers();
    targets_.examine_suspended();
    while (ScanQueue::Clock::now() - begin < tick_budget) {
        scan_due();
        const std::vector<Targets::Found> found = targets_.found(0ms);
        if (found.empty())
            break;
        for (const Targets::Found& one : found) {
            const Attached attached = apply(one);
            all.added |= attached.added;
            if (attached.user)
                all.user = attached.user;
        }
    }
    return all;
}

void Attacher::scan_at_start()
{
    // Installed drivers are probed before a process maps them. If each process has its own probes, this is not possible
    // for processes that are not known yet, such as future members of a cgroup.
    std::vector<Targets::Scan> scans;
    for (pid_t pid : scope_.processes())
        scans.push_back({pid});
    if (system_wide_ && scope_.pids().empty())
        scans.push_back({getpid(), true});
    for (pid_t pid : scope_.pids())
        scans.push_back({pid, true});
    bool warned = false;
    const auto step = [&, begin = ScanQueue::Clock::now()] {
        this->step();
        if (!warned && ScanQueue::Clock::now() - begin > stall_timeout) {
            warned = true;
            warn(fmt::format("files that processes map are slow to read; tracing begins once they are read, "
                             "in {} s at the latest",
                             4 * stall_timeout / 1s));
        }
    };
    found_at_start_ = targets_.found_all(scans, stall_timeout, step);
    for (const Targets::Scan& scan : scans)
        if (!scan.installed)
            this->scan(scan.pid);
    unscanned_ = Targets::describe_unfinished(scans);
    if (!unscanned_.empty())
        unscanned_ += "; calls until the scan completes are not counted";
}

void Attacher::attach_at_start()
{
    if (!found_at_start_)
        scan_at_start();
    const std::vector<Targets::Found> all = *std::exchange(found_at_start_, std::nullopt);
    if (is_open() && scope_.pids().empty() && attachments_.empty()) {
        const auto uses_cuda = [](const Targets::Found& found) {
            return found.ended && found.complete && !found.files.empty();
        };
        system_wide_ |= static_cast<size_t>(std::ranges::count_if(all, uses_cuda)) > options_.members_max;
    }
    // The loop may attach probes to an installed driver before it applies the scans of the processes that map that
    // driver. Until all results are applied, every driver is assumed to share a process with a second driver, and to
    // forward calls to it.
    second_driver_until_[0] = ScanQueue::Clock::time_point::max();
    update_forwarding();
    for (const Targets::Found& found : all) {
        step();
        apply(found);
    }
    second_driver_until_.erase(0);
    update_forwarding();
}

Attacher::Attached Attacher::apply(const Targets::Found& found)
{
    const pid_t pid = found.pid;
    if (found.reexamined) {
        attach_again(found);
        return {.added = true, .user = {}};
    }
    if (found.ended) {
        const auto now = ScanQueue::Clock::now();
        if (const auto search = second_driver_until_.find(pid); search != second_driver_until_.end())
            search->second = now + second_driver_window;
        if (!found.held) // scans of paused processes are not rate-limited, because the processes wait for them
            scan_queue_.scanned(pid, found.took, now);
        if (found.held && found.complete)
            options_.release(*found.held);
        else if (found.held)
            scan_held({.id = *found.held, .pid = pid});
        else if (!found.complete)
            scan_queue_.add(pid, now);
        const auto counts = [this](const CudaFile* file) {
            return file->library == counted_ || (counted_ == Library::driver && file->library == Library::hip) ||
                   options_.count_runtime;
        };
        if (!found.installed && std::ranges::any_of(found.files, counts) && users_.insert(pid).second)
            verbose(fmt::format("process {} ({}) maps CUDA", pid, process_name(pid).value_or("ended")));
        if (options_.count_runtime && found.complete && !found.installed && !found.held)
            report_missing_runtime(pid, found.files);
        return {};
    }
    Attached attached;
    if (!system_wide_ && other_running_thread(pid) && !attach_without_main_thread(pid))
        return attached;
    for (CudaFile* file : found.files) {
        note_driver(*file, found);
        attached.added |= attach(file, process_filter(pid));
        if (!found.installed && !attachments_.at({file, process_filter(pid)}).refused)
            attached.user = pid;
    }
    in_use_ |= attached.user.has_value();
    if (attached.added && !system_wide_ && is_open()) {
        std::set<pid_t> members;
        for (const auto& [key, attachment] : attachments_)
            members.insert(key.second);
        if (members.size() > options_.members_max)
            attach_system_wide();
    }
    return attached;
}

// Records drivers that share a process, because one of them may forward calls to the other. Must be called before
// probes are attached to the file. Otherwise, calls that pass through both drivers would be counted twice.
void Attacher::note_driver(const CudaFile& file, const Targets::Found& found)
{
    if (!file.is_driver() || found.installed)
        return;
    bool is_new = true, has_other = false;
    for (const auto& [key, attachment] : attachments_) {
        const CudaFile* const other = key.first;
        is_new &= other != &file;
        has_other |= other != &file && other->is_driver();
        if (other != &file && other->is_driver() && other->users.contains(found.pid))
            forwarding_.insert({&file, other});
    }
    if (is_new && has_other)
        second_driver_until_[found.pid] = ScanQueue::Clock::time_point::max();
    update_forwarding();
}

void Attacher::update_forwarding()
{
    if (!options_.set_forwarding_files)
        return;
    uint64_t files = second_driver_until_.empty() ? 0 : ~uint64_t{0};
    for (const CudaFile* file : forwarding_)
        files |= uint64_t{1} << file->number % 64;
    options_.set_forwarding_files(files);
}

void Attacher::release_unused()
{
    yield_to_writers(true);
    Links links;
    for (CudaFile* file : targets_.unused()) {
        extract_links_if([file](const CudaFile* attached, pid_t) { return attached == file; }, links);
        verbose(fmt::format("{}: no process uses it any more", file->path));
        forwarding_.erase(file);
        targets_.drop(file);
    }
    detach(std::move(links));
    std::erase_if(second_driver_until_,
                  [now = ScanQueue::Clock::now()](const auto& search) { return search.second < now; });
    update_forwarding();
}

// Reports a process that has a CUDA driver but no runtime. Otherwise its empty table would look like an idle process.
void Attacher::report_missing_runtime(pid_t pid, const std::vector<CudaFile*>& files)
{
    constexpr size_t complaints_max = 16;
    if (files.empty() || without_runtime_.size() >= complaints_max ||
        std::ranges::none_of(files, [](const CudaFile* file) { return file->library == Library::driver; }) ||
        std::ranges::any_of(files, [](const CudaFile* file) { return file->library == Library::runtime; }) ||
        !without_runtime_.insert(pid).second)
        return;
    targets_.complain(fmt::format("process {} has no CUDA runtime with symbols: its program calls the driver directly, "
                                  "or links a stripped static runtime; --api driver counts its calls",
                                  pid));
}

pid_t Attacher::process_filter(pid_t pid) const
{
    return system_wide_ ? 0 : pid;
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
    extract_links_if([pid](const CudaFile*, pid_t attached) { return attached == pid; }, links);
    paused_.erase(pid);
    detach(std::move(links));
}

void Attacher::pause(pid_t group)
{
    Links links;
    for (auto& [key, attachment] : attachments_)
        if (key.second == group) {
            std::ranges::move(attachment.sampled, std::back_inserter(links));
            attachment.sampled.clear();
        }
    paused_.insert(group);
    detach(std::move(links));
}

void Attacher::resume(pid_t group)
{
    if (!paused_.erase(group))
        return;
    for (auto& [key, attachment] : attachments_) {
        if (key.second != group || attachment.refused)
            continue;
        try {
            for (const Hook& hook : hooks_)
                if (hook.sampled)
                    link(hook, attachment);
        } catch (const Error& error) {
            if (group == 0 || process_name(group))
                targets_.complain(error.what());
        }
    }
}

bool Attacher::attach(CudaFile* file, pid_t pid)
{
    auto [where, added] = attachments_.try_emplace({file, pid}, Attachment{file, pid, {}, {}, {}, false});
    return added && link_all(where->second);
}

bool Attacher::link_all(Attachment& attachment)
{
    CudaFile* const file = attachment.file;
    const pid_t pid = attachment.pid;
    if (file->suspended) {
        report_suspended(file, false);
        return false;
    }
    try {
        check_descriptors(*file);
        if (options_.attaching)
            options_.attaching(file->places.size(), file->path);
        for (const Hook& hook : hooks_)
            if ((hook.always || name_probes_attached_) && !(hook.sampled && paused_.contains(pid)))
                link(hook, attachment);
        return !file->suspended;
    } catch (const Error& error) {
        Links made;
        extract_links(attachment, made);
        attachment.refused = true;
        // If the process has exited meanwhile, the error is not reported.
        if (pid == 0 || (process_name(pid) && !other_running_thread(pid)))
            targets_.complain(error.what());
        return false;
    }
}

// Throws Error if the file's probes need more descriptors than are available. Called before the first probe is
// attached, because with half of the probes only half of the calls would be counted.
void Attacher::check_descriptors(const CudaFile& file) const
{
    constexpr size_t reserve = 16; // descriptors kept free for other purposes
    size_t needed = 0;
    for (const Hook& hook : hooks_)
        needed += linker_.descriptors(hook, file);
    const size_t limit = descriptor_limit(), open = open_descriptors();
    if (open + needed + reserve > limit)
        throw Error(
            fmt::format("{}: its probes ({}) need {} more open files, and this process already has {} open, with a "
                        "limit of {} (raise the limit: ulimit -n, or LimitNOFILE= of a systemd service)",
                        file.path, tier_name(options_.tier), needed, open, limit));
}

Links& Attacher::links_of(const Hook& hook, Attachment& attachment)
{
    return hook.sampled ? attachment.sampled : hook.always ? attachment.always : attachment.name_probes;
}

void Attacher::link(const Hook& hook, Attachment& attachment)
{
    if (attachment.file->suspended)
        return;
    linking_ = attachment.file;
    try {
        linker_.attach(hook, {*attachment.file, attachment.pid}, links_of(hook, attachment));
    } catch (const FileSuspended&) {
        // The links of the file were detached before the exception was thrown.
    }
    linking_ = nullptr;
}

void Attacher::attach_name_probes(bool on)
{
    if (name_probes_attached_ == on)
        return;
    name_probes_attached_ = on;
    for (auto& [key, attachment] : attachments_) {
        attachment.name_probes.clear();
        if (!on || attachment.refused)
            continue;
        try {
            for (const Hook& hook : hooks_)
                if (!hook.always)
                    link(hook, attachment);
        } catch (const Error& error) {
            verbose(error.what()); // names are not essential
        }
    }
}

std::set<const CudaFile*> Attacher::attached_files() const
{
    std::set<const CudaFile*> files;
    for (const auto& [key, attachment] : attachments_)
        if (!attachment.refused && !attachment.file->suspended && !attachment.file->places.empty())
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
            line += fmt::format("; not in this file: {}", joined(file->missing, " "));
        lines.push_back(std::move(line));
    }
    return lines;
}

} // namespace gpusnoop
