// SPDX-License-Identifier: Apache-2.0
#include "detail.hpp"

#include "columns/cudalaunch_columns.hpp"
#include "columns/cudamemcpy_columns.hpp"
#include "columns/cudasync_columns.hpp"
#include "columns/gpualloc_columns.hpp"
#include "columns/nvioctl_columns.hpp"
#include "parts.hpp"
#include "util/clock.hpp"

#include <type_traits>

namespace gpusnoop::cudatop {
namespace {

class Page {
public:
    Page(const Key& key, const std::set<ImageId>& images, const Interval& interval, const Context& context)
        : key_(key), images_(images), interval_(interval), context_(context), options_(context.options)
    {
        options_.nanoseconds = true; // what durations are counted in
        options_.json = false;
        for (const CallDelta& delta : interval.calls)
            if (is_of(delta.key))
                calls_[part_of(delta.key)].push_back(delta);
    }

    std::vector<DetailPart> parts()
    {
        launches();
        copies();
        waits();
        memory();
        driver();
        return output_.take();
    }

private:
    bool is_of(const call_key& key) const
    {
        return images_.contains(key.image) && (!key_.who.tid || key.tid == key_.who.tid) &&
               (!context_.settings.rows.device || context_.gpus.of_call(key) == key_.gpu);
    }

    template<class ToolContext, class Settings>
    ToolContext tool_context(const Settings& settings) const
    {
        const CallContext<Settings> base{options_, settings, context_.processes, context_.seconds, context_.probes};
        if constexpr (std::is_same_v<ToolContext, CallContext<Settings>>)
            return base;
        else
            return ToolContext{base};
    }

    template<class K, class G>
    FramesOf<K, G> frames() const
    {
        return [this](const K& key, const G& group) {
            return key.stack < 0 ? std::vector<std::string>()
                                 : interval_.frames(*group.who.images.begin(), key.stack, key.caller);
        };
    }

    void launches();
    void copies();
    void waits();
    void memory();
    void driver();

    const Key& key_;
    const std::set<ImageId>& images_;
    const Interval& interval_;
    const Context& context_;
    Options options_;
    std::map<CallPart, std::vector<CallDelta>> calls_;
    PartsOutput output_;
};

void Page::launches()
{
    cudalaunch::Settings settings;
    settings.kernel = true;
    settings.latency = context_.settings.latency;
    settings.shapes = false;
    settings.names = context_.settings.names;
    settings.sort = "launches";
    LaunchGroups kernels(settings, interval_.names, context_.processes), graphs = kernels;
    for (const CallDelta& delta : calls_[CallPart::launch])
        kernels.add(delta);
    for (const CallDelta& delta : calls_[CallPart::graph])
        graphs.add(delta);
    for (const auto& [title, groups] : {std::pair("Kernels", &kernels), {"Graphs", &graphs}}) {
        output_.title(title);
        cudalaunch::print_groups(output_, *groups, tool_context<cudalaunch::Context>(settings), 0,
                                 frames<LaunchKey, LaunchGroup>());
    }
    if (!settings.latency)
        return;
    settings.kernel = false;
    settings.measure = "latency";
    settings.histogram_of = cudalaunch::Measure::latency;
    LaunchGroups all(settings, interval_.names, context_.processes);
    for (const CallPart part : {CallPart::launch, CallPart::graph})
        for (const CallDelta& delta : calls_[part])
            all.add(delta);
    output_.title("Latency of launch calls");
    cudalaunch::print_histograms(output_, all, tool_context<cudalaunch::Context>(settings), 0);
}

void Page::copies()
{
    cudamemcpy::Settings settings;
    settings.direction = true;
    settings.latency = context_.settings.latency;
    settings.sort = "bytes";
    CopyGroups groups(settings, context_.processes);
    for (const CallDelta& delta : calls_[CallPart::copy])
        groups.add(delta);
    const auto context = tool_context<cudamemcpy::Context>(settings);
    output_.title("Copies");
    cudamemcpy::print_groups(output_, groups, context, 0, frames<CopyKey, CopyGroup>());
    settings.measure = "size";
    settings.histogram_of = cudamemcpy::Measure::size;
    output_.title("Sizes of copies");
    cudamemcpy::print_histograms(output_, groups, context, 0);
}

void Page::waits()
{
    cudasync::Settings settings;
    settings.wait = true;
    settings.latency = true;
    settings.view.stack = true;
    settings.sort = "total_ns";
    WaitGroups by_caller(settings, context_.processes);
    for (const CallPart part : {CallPart::wait, CallPart::poll})
        for (const CallDelta& delta : calls_[part])
            by_caller.add(delta);
    for (const Waiting::Part& part : interval_.waits)
        if (is_of(part.key))
            by_caller.add(part);
    output_.title("Waits, and who waits");
    cudasync::print_groups(output_, by_caller, tool_context<cudasync::Context>(settings), 0,
                           frames<WaitKey, WaitGroup>());
    settings.view.stack = false;
    settings.measure = "duration";
    WaitGroups by_kind(settings, context_.processes);
    for (const CallDelta& delta : calls_[CallPart::wait])
        by_kind.add(delta);
    output_.title("Durations of waits");
    cudasync::print_histograms(output_, by_kind, tool_context<cudasync::Context>(settings), 0);
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
    for (const CallDelta& delta : calls_[CallPart::memory])
        groups.add(delta);
    groups.add_held(interval_.holdings, interval_.ended);
    std::erase_if(groups.groups(), [this](const auto& item) {
        return !images_.contains(*item.second.who.images.begin()) || item.second.idle();
    });
    output_.title("Memory held, by call stack");
    gpualloc::print_groups(output_, groups, tool_context<gpualloc::Context>(settings), 0,
                           frames<AllocationKey, AllocationGroup>());
    settings.view.stack = false;
    settings.measure = "size";
    settings.histogram_of = gpualloc::Measure::size;
    AllocationGroups sizes(settings, context_.processes);
    for (const CallDelta& delta : calls_[CallPart::memory])
        sizes.add(delta);
    output_.title("Sizes of allocations");
    gpualloc::print_histograms(output_, sizes, tool_context<gpualloc::Context>(settings), 0);
}

void Page::driver()
{
    nvioctl::Settings settings;
    settings.command = true;
    settings.node = true;
    settings.latency = true;
    settings.sort = "total_ns";
    DriverGroups groups(settings, context_.processes);
    for (const CallDelta& delta : calls_[CallPart::driver])
        groups.add(delta);
    for (const driver_call& call : interval_.pending)
        if (is_of(call.key))
            groups.add(call, clock_ns(CLOCK_MONOTONIC));
    output_.title("Calls into the driver");
    nvioctl::print_groups(output_, groups, tool_context<nvioctl::Context>(settings), 0,
                          frames<DriverKey, DriverGroup>());
}

} // namespace

std::vector<DetailPart> detail(const Key& key, const std::set<ImageId>& images, const Interval& interval,
                               const Context& context)
{
    return Page(key, images, interval, context).parts();
}

} // namespace gpusnoop::cudatop
