// SPDX-License-Identifier: Apache-2.0
#include "attach.hpp"

#include "error.hpp"

#include "../bpf/attach.h"

#include <algorithm>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cerrno>
#include <fmt/format.h>
#include <iterator>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace gpusnoop {
namespace {

class FdLink : public Attacher::Link {
public:
    explicit FdLink(Fd fd) : fd_(std::move(fd)) {}

private:
    Fd fd_;
};

class LibbpfLink : public Attacher::Link {
public:
    explicit LibbpfLink(bpf_link* link) : link_(link) {}
    ~LibbpfLink() override { bpf_link__destroy(link_); }
    LibbpfLink(const LibbpfLink&) = delete;
    LibbpfLink& operator=(const LibbpfLink&) = delete;

private:
    bpf_link* link_;
};

// The perf event is closed before its uprobe event is removed: the kernel refuses to remove one in use.
class EventLink : public Attacher::Link {
public:
    EventLink(const Tracefs& tracefs, const std::string& path, std::span<const uint64_t> offsets, bool on_return)
        : event_(tracefs, path, offsets, on_return)
    {}
    uint64_t id() const { return event_.id(); }
    void keep(Fd perf, Fd program)
    {
        perf_ = std::move(perf);
        program_ = std::move(program);
    }

private:
    UprobeEvent event_;
    Fd perf_;
    Fd program_;
};

std::vector<Place> places_of(const Hook& hook, const CudaFile& file)
{
    std::vector<Place> places;
    for (const Place& place : file.places)
        if (std::ranges::find(hook.probes, place.probe) != hook.probes.end())
            places.push_back(place);
    return places;
}

uint64_t in_page(const Place& place)
{
    return place.offset % 4096;
}

// As few groups as will do so that no two places of a group lie at the same address within their pages.
std::vector<std::vector<Place>> told_apart_in_page(const std::vector<Place>& places)
{
    std::vector<std::vector<Place>> groups;
    for (const Place& place : places) {
        auto group = std::ranges::find_if(groups, [&](const std::vector<Place>& others) {
            return std::ranges::none_of(others, [&](const Place& other) { return in_page(other) == in_page(place); });
        });
        if (group == groups.end())
            group = groups.insert(groups.end(), std::vector<Place>());
        group->push_back(place);
    }
    return groups;
}

[[noreturn]] void refuse(const CudaFile& file, Tier tier, int error)
{
    throw Error(
        fmt::format("{}: the kernel refused the probes ({}): {}", file.path, tier_name(tier), errno_text(error)));
}

// Each detach waits for a grace period of the kernel (30 to 70 ms). They wait together, or the end of a run over many
// files would take seconds. These threads touch nothing but their own links.
void detach(std::vector<std::unique_ptr<Attacher::Link>> links)
{
    constexpr size_t most_threads = 32;
    const size_t count = std::min(links.size(), most_threads);
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < count; t++)
        threads.emplace_back([&links, t, count] {
            for (size_t i = t; i < links.size(); i += count)
                links[i].reset();
        });
}

} // namespace

Attacher::Attacher(bpf_object* object, std::span<const Probe> probes, std::vector<Hook> hooks, const Scope& scope,
                   Options options)
    : object_(object), probes_(probes), hooks_(std::move(hooks)), scope_(scope), options_(std::move(options)),
      targets_(probes, options_.count_runtime), everybody_(scope.everybody() || !options_.filter_at_attach)
{
    choose_programs(object);
    if (options_.tier == Tier::tracefs)
        tracefs_.emplace();
}

Attacher::~Attacher()
{
    detach(take_links());
}

std::vector<std::unique_ptr<Attacher::Link>> Attacher::take_links()
{
    std::vector<std::unique_ptr<Link>> links;
    for (auto& [key, attachment] : attachments_)
        take_links(attachment, links);
    attachments_.clear();
    return links;
}

void Attacher::take_links(Attachment& from, std::vector<std::unique_ptr<Link>>& to)
{
    for (auto* list : {&from.always, &from.when_armed})
        std::ranges::move(*list, std::back_inserter(to));
}

bpf_program* Attacher::program(const Hook& hook, std::string_view suffix) const
{
    std::string name = fmt::format("{}_{}", hook.program, suffix);
    bpf_program* program = bpf_object__find_program_by_name(object_, name.c_str());
    if (!program)
        throw Error(fmt::format("the BPF object has no program {}", name));
    return program;
}

void Attacher::choose_programs(bpf_object* object)
{
    bpf_program* each = nullptr;
    bpf_object__for_each_program (each, object)
        bpf_program__set_autoload(each, false);
    const bool multi = options_.tier == Tier::session || options_.tier == Tier::multi;
    auto choose = [&](const Hook& hook, std::string_view suffix, int attach_type) {
        bpf_program* chosen = program(hook, suffix);
        bpf_program__set_autoload(chosen, true);
        bpf_program__set_expected_attach_type(chosen, static_cast<bpf_attach_type>(attach_type));
    };
    for (const Hook& hook : hooks_) {
        if (hook.returns && options_.tier == Tier::session) {
            choose(hook, "session", uprobe_session_attach_type);
            continue;
        }
        choose(hook, "entry", multi ? uprobe_multi_attach_type : 0);
        if (hook.returns)
            choose(hook, "return", multi ? uprobe_multi_attach_type : 0);
    }
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
    std::vector<std::unique_ptr<Link>> first = take_links();
    everybody_ = again_ = true;
    for (CudaFile* file : files)
        attach(file, 0);
    options_.again();
    detach(std::move(first));
}

// Of a probe, by which the program knows it (bpf/common.bpf.h).
uint64_t Attacher::cookie(uint32_t number) const
{
    return again_ ? number | COOKIE_SECOND : number;
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
    std::vector<std::unique_ptr<Link>> links;
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
                attach_hook(hook, where->second);
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

void Attacher::attach_hook(const Hook& hook, Attachment& attachment)
{
    const std::vector<Place> places = places_of(hook, *attachment.file);
    if (places.empty())
        return;
    auto& links = hook.armed ? attachment.always : attachment.when_armed;
    switch (options_.tier) {
    case Tier::session:
        if (hook.returns) {
            links.push_back(attach_multi(hook, "session", uprobe_session_attach_type, false, places, attachment));
            break;
        }
        [[fallthrough]];
    case Tier::multi:
        // The return first: an entry without its return would leave state behind.
        if (hook.returns)
            links.push_back(attach_multi(hook, "return", uprobe_multi_attach_type, true, places, attachment));
        links.push_back(attach_multi(hook, "entry", uprobe_multi_attach_type, false, places, attachment));
        break;
    case Tier::tracefs:
        for (const std::vector<Place>& group : told_apart_in_page(places)) {
            if (hook.returns)
                links.push_back(attach_event(hook, true, group, attachment));
            links.push_back(attach_event(hook, false, group, attachment));
        }
        break;
    case Tier::perf:
        for (const Place& place : places) {
            if (hook.returns)
                links.push_back(attach_perf(hook, true, place, attachment));
            links.push_back(attach_perf(hook, false, place, attachment));
        }
        break;
    }
}

std::unique_ptr<Attacher::Link> Attacher::attach_multi(const Hook& hook, std::string_view suffix, int attach_type,
                                                       bool on_return, const std::vector<Place>& places,
                                                       const Attachment& attachment)
{
    std::vector<uint64_t> offsets, cookies;
    for (const Place& place : places) {
        offsets.push_back(place.offset);
        cookies.push_back(cookie(place.probe + 1));
    }
    const std::string path = attachment.file->open_path();
    int link = create_link({.program = bpf_program__fd(program(hook, suffix)),
                            .attach_type = attach_type,
                            .path = path.c_str(),
                            .offsets = offsets.data(),
                            .cookies = cookies.data(),
                            .count = static_cast<uint32_t>(places.size()),
                            .on_return = on_return,
                            .pid = attachment.pid});
    if (link < 0)
        refuse(*attachment.file, options_.tier, -link);
    return std::make_unique<FdLink>(Fd(link));
}

std::unique_ptr<Attacher::Link> Attacher::attach_event(const Hook& hook, bool on_return,
                                                       const std::vector<Place>& places, const Attachment& attachment)
{
    const uint32_t number = static_cast<uint32_t>(cookie(++events_));
    std::vector<uint64_t> offsets;
    int rows = bpf_object__find_map_fd_by_name(object_, "rows_by_place");
    for (const Place& place : places) {
        offsets.push_back(place.offset);
        const uint32_t key[] = {number, static_cast<uint32_t>(in_page(place))};
        const uint32_t row = place.probe + 1;
        if (bpf_map_update_elem(rows, key, &row, BPF_ANY))
            refuse(*attachment.file, options_.tier, errno);
    }
    auto link = std::make_unique<EventLink>(*tracefs_, attachment.file->open_path(), offsets, on_return);
    perf_event_attr attributes{};
    attributes.size = sizeof(attributes);
    attributes.type = PERF_TYPE_TRACEPOINT;
    attributes.config = link->id();
    // With a pid, the kernel sets the breakpoints in that process' memory alone; without one, the CPU is irrelevant.
    const pid_t pid = attachment.pid ? attachment.pid : -1;
    Fd perf(
        static_cast<int>(syscall(SYS_perf_event_open, &attributes, pid, pid == -1 ? 0 : -1, -1, PERF_FLAG_FD_CLOEXEC)));
    LIBBPF_OPTS(bpf_link_create_opts, options);
    options.perf_event.bpf_cookie = number;
    int program_fd = bpf_program__fd(program(hook, on_return ? "return" : "entry"));
    Fd attached(perf ? bpf_link_create(program_fd, perf.get(), BPF_PERF_EVENT, &options) : -1);
    if (!attached || ioctl(perf.get(), PERF_EVENT_IOC_ENABLE, 0))
        refuse(*attachment.file, options_.tier, errno);
    link->keep(std::move(perf), std::move(attached));
    return link;
}

std::unique_ptr<Attacher::Link> Attacher::attach_perf(const Hook& hook, bool on_return, const Place& place,
                                                      const Attachment& attachment)
{
    LIBBPF_OPTS(bpf_uprobe_opts, options);
    options.bpf_cookie = cookie(place.probe + 1);
    options.retprobe = on_return;
    bpf_link* link = bpf_program__attach_uprobe_opts(program(hook, on_return ? "return" : "entry"),
                                                     attachment.pid ? attachment.pid : -1,
                                                     attachment.file->open_path().c_str(), place.offset, &options);
    if (!link)
        refuse(*attachment.file, options_.tier, errno);
    return std::make_unique<LibbpfLink>(link);
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
                    attach_hook(hook, attachment);
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
