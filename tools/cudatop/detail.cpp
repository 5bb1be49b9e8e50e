// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/detail.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "proc/process.hpp"
#include "tools/cudalaunch/columns.hpp"
#include "tools/cudamemcpy/columns.hpp"
#include "tools/cudasync/columns.hpp"
#include "tools/cudatop/parts.hpp"
#include "tools/cudatop/stack_samples.hpp"
#include "tools/gpualloc/columns.hpp"
#include "tools/nvioctl/columns.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <type_traits>

namespace gpusnoop::cudatop {
namespace {

class Page {
public:
    Page(const Key& key, const std::set<ImageId>& images, const Interval& interval, const SinceOpened& since,
         const Context& context)
        : key_(key), images_(images), interval_(interval), context_(context), options_(context.options)
    {
        options_.nanoseconds = true; // the BPF programs count histograms of durations in nanoseconds
        options_.json = false;
        now_.seconds = context.seconds;
        now_.take(interval.calls, interval.waits, *this);
        since_.seconds = since.seconds();
        since_.take(since.calls(), since.waits(), *this);
        since_.title = fmt::format(", since this page was opened {:.0f} s ago", since.seconds());
        if (const int64_t grown = since.grown_bytes(interval.holdings))
            grown_ = fmt::format(": {}{} since this page was opened {:.0f} s ago", grown > 0 ? "+" : "-",
                                 human_bytes(static_cast<uint64_t>(std::abs(grown))), since.seconds());
    }

    std::vector<DetailPart> parts()
    {
        const Period* const periods[] = {&now_, &since_};
        for (const Period* period : periods)
            launches(*period);
        samples("launches", {CallPart::launch, CallPart::graph});
        for (const Period* period : periods)
            copies(*period);
        samples("copies", {CallPart::copy});
        for (const Period* period : periods)
            waits(*period);
        samples("polls", {CallPart::poll});
        memory();
        driver();
        return output_.take();
    }

private:
    struct Period {
        double seconds = 0;
        std::string title{}; // appended to the titles of its tables
        std::map<CallPart, std::vector<CallDelta>> calls{};
        std::vector<Waiting::Part> waits{}; // parts of waits that had not returned by the end of an interval

        void take(std::span<const CallDelta> all, std::span<const Waiting::Part> parts, const Page& page)
        {
            for (const CallDelta& delta : all)
                if (page.is_of(delta.key))
                    calls[part_of(delta.key)].push_back(delta);
            std::ranges::copy_if(parts, std::back_inserter(waits),
                                 [&page](const Waiting::Part& part) { return page.is_of(part.key); });
        }
        std::span<const CallDelta> of(CallPart part) const
        {
            const auto found = calls.find(part);
            return found == calls.end() ? std::span<const CallDelta>() : found->second;
        }
    };

    bool is_of(const call_key& key) const
    {
        return images_.contains(key.image) && (!key_.who.tid || key.tid == key_.who.tid) &&
               (!context_.settings.rows.device || context_.gpus.of_call(key) == key_.gpu);
    }

    template<class ToolContext, class Settings>
    ToolContext tool_context(const Settings& settings, double seconds) const
    {
        const CallContext<Settings> base{
            options_, settings,        context_.processes,
            seconds,  context_.probes, [this](const CallKey& key, const WhoSeen& who) { return frames(key, who); }};
        if constexpr (std::is_same_v<ToolContext, CallContext<Settings>>)
            return base;
        else
            return ToolContext{base};
    }

    Frames frames(const CallKey& key, const WhoSeen& who) const
    {
        return key.stack < 0 ? Frames() : interval_.frames(*who.images.begin(), key.stack, key.caller);
    }

    void launches(const Period& period);
    void copies(const Period& period);
    void waits(const Period& period);
    void samples(std::string_view calls, std::initializer_list<CallPart> parts);
    void memory();
    void driver();

    const Key& key_;
    const std::set<ImageId>& images_;
    const Interval& interval_;
    const Context& context_;
    Options options_;
    Period now_, since_;
    std::string grown_; // memory growth since the page was opened, appended to a title; empty if there is none
    PartsOutput output_;
};

void Page::launches(const Period& period)
{
    cudalaunch::Settings settings;
    settings.kernel = true;
    settings.latency = context_.settings.latency;
    settings.shapes = false;
    settings.names = context_.settings.names;
    settings.sort = "launches";
    LaunchGroups kernels(settings, interval_.names, context_.processes), graphs = kernels;
    for (const CallDelta& delta : period.of(CallPart::launch))
        kernels.add(delta);
    for (const CallDelta& delta : period.of(CallPart::graph))
        graphs.add(delta);
    for (const auto& [title, groups] : {std::pair(std::string("Kernels"), &kernels), {"Graphs", &graphs}}) {
        output_.title(title + period.title);
        cudalaunch::print_groups(output_, *groups, tool_context<cudalaunch::Context>(settings, period.seconds), 0);
    }
    if (!settings.latency || &period != &now_)
        return;
    settings.kernel = false;
    settings.measure = "latency";
    settings.histogram_of = cudalaunch::Measure::latency;
    LaunchGroups all(settings, interval_.names, context_.processes);
    for (const CallPart part : {CallPart::launch, CallPart::graph})
        for (const CallDelta& delta : period.of(part))
            all.add(delta);
    output_.title("Latency of launch calls");
    cudalaunch::print_groups(output_, all, tool_context<cudalaunch::Context>(settings, period.seconds), 0);
}

void Page::copies(const Period& period)
{
    cudamemcpy::Settings settings;
    settings.direction = true;
    settings.latency = context_.settings.latency;
    settings.sort = "bytes";
    CopyGroups groups(settings, context_.processes);
    for (const CallDelta& delta : period.of(CallPart::copy))
        groups.add(delta);
    const auto context = tool_context<cudamemcpy::Context>(settings, period.seconds);
    output_.title("Copies" + period.title);
    cudamemcpy::print_groups(output_, groups, context, 0);
    if (&period != &now_)
        return;
    settings.measure = "size";
    settings.histogram_of = cudamemcpy::Measure::size;
    output_.title("Sizes of copies");
    cudamemcpy::print_groups(output_, groups, context, 0);
}

void Page::waits(const Period& period)
{
    cudasync::Settings settings;
    settings.wait = true;
    settings.latency = true;
    settings.view.stack = true;
    settings.sort = "total_ns";
    WaitGroups by_caller(settings, context_.processes);
    for (const CallPart part : {CallPart::wait, CallPart::poll})
        for (const CallDelta& delta : period.of(part))
            by_caller.add(delta);
    for (const Waiting::Part& part : period.waits)
        by_caller.add(part);
    output_.title("Waits, by caller" + period.title);
    auto context = tool_context<cudasync::Context>(settings, period.seconds);
    context.frames = [this](const CallKey& key, const WhoSeen& who) {
        Frames of_key = frames(key, who);
        if (of_key.lines.empty() && static_cast<const WaitKey&>(key).wait != WAIT_POLL)
            of_key.lines.emplace_back("(no stack: one is sampled per 10 ms of waiting)");
        return of_key;
    };
    cudasync::print_groups(output_, by_caller, context, 0);
    if (&period != &now_)
        return;
    settings.view.stack = false;
    settings.measure = "duration";
    WaitGroups by_kind(settings, context_.processes);
    for (const CallDelta& delta : period.of(CallPart::wait))
        by_kind.add(delta);
    output_.title("Durations of waits");
    cudasync::print_groups(output_, by_kind, tool_context<cudasync::Context>(settings, period.seconds), 0);
}

// Shows all samples since the page was opened, because more samples are more accurate. If there are none yet, because
// the page has just been opened, shows the samples of the last interval.
void Page::samples(std::string_view calls, std::initializer_list<CallPart> parts)
{
    for (const Period* period : {&since_, &now_}) {
        StackSamples samples;
        for (const CallPart part : parts)
            samples.add(period->of(part));
        if (samples.empty())
            continue;
        output_.add(samples.part(calls, period->title, interval_.frames));
        return;
    }
}

void Page::memory()
{
    gpualloc::Settings settings;
    settings.view.stack = true;
    settings.holding = true;
    settings.latency = true;
    settings.sort = "live_bytes";
    settings.nvml_library = "off";
    AllocationGroups groups(settings, context_.processes);
    for (const CallDelta& delta : now_.of(CallPart::memory))
        groups.add(delta);
    groups.add_held(interval_.holdings, interval_.ended);
    std::erase_if(groups.groups(), [this](const auto& item) {
        return !images_.contains(*item.second.who.images.begin()) || item.second.idle();
    });
    output_.title("Memory held, by call stack" + grown_);
    gpualloc::print_groups(output_, groups, tool_context<gpualloc::Context>(settings, now_.seconds), 0);
    settings.view.stack = false;
    settings.measure = "size";
    settings.histogram_of = gpualloc::Measure::size;
    AllocationGroups sizes(settings, context_.processes);
    for (const CallDelta& delta : now_.of(CallPart::memory))
        sizes.add(delta);
    output_.title("Sizes of allocations");
    gpualloc::print_groups(output_, sizes, tool_context<gpualloc::Context>(settings, now_.seconds), 0);
}

void Page::driver()
{
    nvioctl::Settings settings;
    settings.command = true;
    settings.node = true;
    settings.latency = true;
    settings.sort = "total_ns";
    DriverGroups groups(settings, context_.processes);
    for (const CallDelta& delta : now_.of(CallPart::driver))
        groups.add(delta);
    for (const driver_call& call : interval_.pending)
        if (is_of(call.key))
            groups.add(call, clock_ns(CLOCK_MONOTONIC));
    output_.title("Driver calls");
    nvioctl::print_groups(output_, groups, tool_context<nvioctl::Context>(settings, now_.seconds), 0);
}

std::string age_text(double seconds)
{
    if (seconds < 120)
        return fmt::format("{:.0f} s", seconds);
    if (seconds < 7200)
        return fmt::format("{:.0f} min", seconds / 60);
    return seconds < 172800 ? fmt::format("{:.1f} h", seconds / 3600) : fmt::format("{:.1f} days", seconds / 86400);
}

} // namespace

DetailPart processes_part(const std::string& id, const std::set<ImageId>& images, const Snapshot& snapshot,
                          const Context& context)
{
    constexpr size_t processes_max = 20;
    DetailPart part;
    std::map<uint32_t, ImageId> processes; // the latest image of each pid
    for (const ImageId& image : images)
        processes.insert_or_assign(image.pid, image);
    for (const auto& [pid, image] : processes) {
        if (part.lines.size() >= 2 * processes_max) {
            part.lines.push_back(fmt::format("... {} processes in all", processes.size()));
            break;
        }
        const std::string& command = context.processes.command_line(image);
        const ProcessInfo& info = context.processes.info(image);
        part.lines.push_back(fmt::format("{} {}", pid, command.empty() ? info.comm : command));
        std::string line = fmt::format("    user {}", context.users.of(static_cast<pid_t>(pid)).value_or("-"));
        WhoSeen who;
        who.add(image, context.processes.owner(image, {}));
        const Cell owner = owner_cell(who, OwnerPart::text);
        if (const auto* text = std::get_if<std::string>(&owner))
            line += ", owner " + *text;
        const uint64_t now = clock_ns(CLOCK_BOOTTIME);
        if (info.start_ns && info.start_ns <= now)
            line += ", started " + age_text(static_cast<double>(now - info.start_ns) / 1e9) + " ago";
        if (const auto parent = parent_of(static_cast<pid_t>(pid)); parent.value_or(0) > 0)
            line += fmt::format(", child of {} {}", *parent, process_name(*parent).value_or("?"));
        part.lines.push_back(std::move(line));
    }
    for (const Trouble& trouble : snapshot.troubles.value_or(std::vector<Trouble>()))
        if (std::ranges::find(trouble.rows, id) != trouble.rows.end()) {
            part.lines.push_back(fmt::format("{:<2} {}", trouble.mark, trouble.words));
            part.lines.push_back("    next: " + trouble.next);
        }
    return part;
}

std::vector<DetailPart> detail(const Key& key, const std::set<ImageId>& images, const Interval& interval,
                               const SinceOpened& since, const Context& context)
{
    return Page(key, images, interval, since, context).parts();
}

} // namespace gpusnoop::cudatop
