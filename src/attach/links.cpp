// SPDX-License-Identifier: Apache-2.0
#include "attach/links.hpp"

#include "base/error.hpp"

#include "bpf/shared/probe.h"

#include <algorithm>
#include <atomic>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cerrno>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <stdexcept>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace gpusnoop {
namespace {

// Adds entries for one uprobe event to the BPF map rows_by_place, and removes them when destroyed. All probes of an
// event share a cookie, so the BPF program identifies a probe by the event and by the probe's offset within its page.
class RowsByPlace {
public:
    RowsByPlace(int map, uint32_t event) : map_(map), event_(event) {}
    ~RowsByPlace()
    {
        for (const uint32_t place : places_) {
            const uint32_t key[] = {event_, place};
            bpf_map_delete_elem(map_, key);
        }
    }
    RowsByPlace(const RowsByPlace&) = delete;
    RowsByPlace& operator=(const RowsByPlace&) = delete;

    bool add(uint32_t place, uint32_t row)
    {
        const uint32_t key[] = {event_, place};
        places_.push_back(place);
        return bpf_map_update_elem(map_, key, &row, BPF_ANY) == 0;
    }

private:
    int map_;
    uint32_t event_;
    std::vector<uint32_t> places_;
};

// The order of members matters: they are destroyed in reverse order, and the kernel refuses to remove a uprobe event
// while its perf event is open.
struct EventLink {
    std::unique_ptr<RowsByPlace> rows;
    UprobeEvent event;
    Link attached{};
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

// Splits the places into groups, so that no two places of a group have the same offset within their page.
std::vector<std::vector<Place>> distinguishable_in_page(const std::vector<Place>& places)
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

} // namespace

Link own_link(bpf_link* link)
{
    return {link, bpf_link__destroy};
}

Link own_link(Fd fd)
{
    return std::make_shared<Fd>(std::move(fd));
}

Link attach_tracepoint(const bpf_program* program, uint64_t id, pid_t pid, uint64_t cookie)
{
    perf_event_attr attributes{};
    attributes.size = sizeof(attributes);
    attributes.type = PERF_TYPE_TRACEPOINT;
    attributes.config = id;
    // With a pid, the kernel sets a uprobe's breakpoints in that process only. Without one, the program runs on every
    // CPU, although the event is opened on CPU 0.
    Fd event(static_cast<int>(
        syscall(SYS_perf_event_open, &attributes, pid ? pid : -1, pid ? -1 : 0, -1, PERF_FLAG_FD_CLOEXEC)));
    LIBBPF_OPTS(bpf_link_create_opts, options);
    options.perf_event.bpf_cookie = cookie;
    Fd link(event ? bpf_link_create(bpf_program__fd(program), event.get(), BPF_PERF_EVENT, &options) : -1);
    if (!link || ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0))
        return nullptr;
    // the pair's destructor closes the link before the event
    return std::make_shared<std::pair<Fd, Fd>>(std::move(event), std::move(link));
}

// Detaching a link waits for an RCU grace period (30 to 70 ms). Several threads wait in parallel, because otherwise
// detaching from many files would take seconds.
void detach(Links links)
{
    constexpr size_t threads_max = 32;
    const DeferredWarnings held_until_detached;
    std::atomic<size_t> next = 0;
    auto work = [&] {
        for (size_t i; (i = next++) < links.size();)
            links[i].reset();
    };
    std::vector<std::jthread> others;
    try {
        while (others.size() + 1 < std::min(links.size(), threads_max))
            others.emplace_back(work);
    } catch (const std::exception&) {
        // A limit on tasks or memory was reached. The threads already started do all the work.
    }
    work();
}

Linker::Linker(bpf_object* object, Tier tier, std::span<const Hook> hooks, std::function<void()> step)
    : object_(object), hooks_(hooks), tier_(tier), step_(std::move(step))
{
    if (hooks.size() > HOOKS_MAX)
        throw std::logic_error("more than HOOKS_MAX hooks");
    choose_programs(hooks);
    if (tier != Tier::tracefs)
        return;
    tracefs_.emplace();
    if (const unsigned left = remove_leftover_events(*tracefs_).removed)
        verbose(fmt::format("removed {} uprobe events that killed runs had left behind", left));
}

bpf_program* Linker::program(const Hook& hook, std::string_view suffix) const
{
    std::string name = fmt::format("{}_{}", hook.program, suffix);
    bpf_program* program = bpf_object__find_program_by_name(object_, name.c_str());
    if (!program)
        throw Error(fmt::format("the BPF object has no program {}", name));
    return program;
}

void Linker::choose_programs(std::span<const Hook> hooks)
{
    bpf_program* each = nullptr;
    // Programs in other sections are not attached through hooks, so whether they are loaded is decided elsewhere.
    bpf_object__for_each_program (each, object_)
        if (bpf_program__section_name(each) == std::string_view("uprobe"))
            bpf_program__set_autoload(each, false);
    const bool multi = tier_ == Tier::session || tier_ == Tier::multi;
    auto choose = [&](const Hook& hook, std::string_view suffix, int attach_type) {
        bpf_program* chosen = program(hook, suffix);
        bpf_program__set_autoload(chosen, true);
        bpf_program__set_expected_attach_type(chosen, static_cast<bpf_attach_type>(attach_type));
    };
    for (const Hook& hook : hooks) {
        if (hook.returns && tier_ == Tier::session) {
            choose(hook, "session", uprobe_session_attach_type);
            continue;
        }
        choose(hook, "entry", multi ? uprobe_multi_attach_type : 0);
        if (hook.returns)
            choose(hook, "return", multi ? uprobe_multi_attach_type : 0);
    }
}

// Returns the cookie by which the BPF programs identify a probe (bpf/shared/probe.h).
uint64_t Linker::cookie(const Hook& hook, const CudaFile& file, uint32_t number) const
{
    const auto hook_number = static_cast<uint64_t>(&hook - hooks_.data());
    const uint64_t file_bits = file.is_driver()
                                   ? COOKIE_OF_DRIVER | uint64_t{file.number & COOKIE_WORD_MAX} << COOKIE_WORD_SHIFT
                                   : uint64_t{file.cookie_word} << COOKIE_WORD_SHIFT;
    return file_bits | hook_number << COOKIE_HOOK_SHIFT | (second_ ? COOKIE_SECOND : 0) | number;
}

size_t Linker::descriptors(const Hook& hook, const CudaFile& file) const
{
    const std::vector<Place> places = places_of(hook, file);
    const size_t links_per_place = hook.returns && tier_ != Tier::session ? 2 : 1;
    switch (tier_) {
    case Tier::session:
    case Tier::multi:
        return places.empty() ? 0 : links_per_place;
    case Tier::tracefs:
        // One descriptor for the perf event, one for the link.
        return 2 * links_per_place * distinguishable_in_page(places).size();
    case Tier::perf:
        return 2 * links_per_place * places.size();
    }
    return 0;
}

void Linker::attach(const Hook& hook, const Target& target, Links& links)
{
    const std::vector<Place> places = places_of(hook, target.file);
    if (places.empty())
        return;
    switch (tier_) {
    case Tier::session:
        if (hook.returns) {
            links.push_back(attach_multi(hook, "session", uprobe_session_attach_type, false, places, target));
            break;
        }
        [[fallthrough]];
    case Tier::multi:
        // Attach return probes first, because a call that hits only its entry probe would leave state behind.
        if (hook.returns)
            links.push_back(attach_multi(hook, "return", uprobe_multi_attach_type, true, places, target));
        links.push_back(attach_multi(hook, "entry", uprobe_multi_attach_type, false, places, target));
        break;
    case Tier::tracefs:
        for (const std::vector<Place>& group : distinguishable_in_page(places)) {
            step_();
            if (hook.returns)
                links.push_back(attach_event(hook, true, group, target));
            links.push_back(attach_event(hook, false, group, target));
        }
        break;
    case Tier::perf:
        for (const Place& place : places) {
            step_();
            if (hook.returns)
                links.push_back(attach_perf(hook, true, place, target));
            links.push_back(attach_perf(hook, false, place, target));
        }
        break;
    }
}

Link Linker::attach_multi(const Hook& hook, std::string_view suffix, int attach_type, bool on_return,
                          const std::vector<Place>& places, const Target& target)
{
    std::vector<uint64_t> offsets, cookies;
    for (const Place& place : places) {
        offsets.push_back(place.offset);
        cookies.push_back(cookie(hook, target.file, place.probe + 1));
    }
    const std::string path = target.file.open_path();
    int link = create_link({.program = bpf_program__fd(program(hook, suffix)),
                            .attach_type = attach_type,
                            .path = path.c_str(),
                            .offsets = offsets.data(),
                            .cookies = cookies.data(),
                            .count = static_cast<uint32_t>(places.size()),
                            .on_return = on_return,
                            .pid = target.pid});
    if (link < 0)
        refuse(target.file, tier_, -link);
    return own_link(Fd(link));
}

Link Linker::attach_event(const Hook& hook, bool on_return, const std::vector<Place>& places, const Target& target)
{
    const uint64_t number = cookie(hook, target.file, ++events_);
    std::vector<uint64_t> offsets;
    auto rows = std::make_unique<RowsByPlace>(bpf_object__find_map_fd_by_name(object_, "rows_by_place"),
                                              static_cast<uint32_t>(number));
    for (const Place& place : places) {
        offsets.push_back(place.offset);
        if (!rows->add(static_cast<uint32_t>(in_page(place)), place.probe + 1))
            refuse(target.file, tier_, errno);
    }
    std::shared_ptr<EventLink> link(
        new EventLink{std::move(rows), {*tracefs_, target.file.open_path(), offsets, on_return}});
    link->attached =
        attach_tracepoint(program(hook, on_return ? "return" : "entry"), link->event.id(), target.pid, number);
    if (!link->attached)
        refuse(target.file, tier_, errno);
    return link;
}

Link Linker::attach_perf(const Hook& hook, bool on_return, const Place& place, const Target& target)
{
    LIBBPF_OPTS(bpf_uprobe_opts, options);
    options.bpf_cookie = cookie(hook, target.file, place.probe + 1);
    options.retprobe = on_return;
    bpf_link* link =
        bpf_program__attach_uprobe_opts(program(hook, on_return ? "return" : "entry"), target.pid ? target.pid : -1,
                                        target.file.open_path().c_str(), place.offset, &options);
    if (!link)
        refuse(target.file, tier_, errno);
    return own_link(link);
}

} // namespace gpusnoop
