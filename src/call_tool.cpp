// SPDX-License-Identifier: Apache-2.0
#include "call_tool.hpp"

#include "../bpf/record.h"
#include "error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>

namespace gpusnoop {
namespace {

constexpr size_t table_bytes = 64 << 20; // what the table of calls may take over all CPUs

} // namespace

void CallTool::add_call_options(CLI::App& app, const std::string& by, const std::string& by_default,
                                const std::string& measures)
{
    CallSettings& s = settings_;
    app.add_option("--by", s.by,
                   fmt::format("rows by {}{}{}, or several ({})", by, s.of_functions ? "stream, device, api, " : "",
                               WhoView::names, by_default))
        ->type_name("WHAT[,WHAT]");
    app.add_flag("-e,--events", s.events, "one line per call");
    app.add_option("-H,--hist", s.measure, "histogram of " + measures)
        ->type_name("WHAT")
        ->check([measures](const std::string& text) { return text.empty() ? "-H takes " + measures : std::string(); });
    if (s.of_functions)
        app.add_option("--api", s.api, "layer to count at: driver, runtime or both (driver)")->type_name("LAYER");
    app.add_option("-s,--sort", s.sort, fmt::format("column to sort by ({})", s.sort))->type_name("COLUMN");
}

void CallTool::check(const Options& options)
{
    CallSettings& s = settings_;
    if (s.api != "driver" && s.api != "runtime" && s.api != "both")
        throw UsageError(fmt::format("--api takes driver, runtime or both, not '{}'", s.api));
    if (s.events && s.histogram())
        throw UsageError("choose lines (-e) or histograms (-H)");
    if (options.user_stacks && s.histogram())
        throw UsageError("a histogram has no stacks: leave out -U or -H");
    if (!s.histogram() && (options.per_process || options.per_thread))
        throw UsageError("-P and -L are for histograms (-H); for tables use --by pid or --by thread");
    s.driver = s.api != "runtime";
    s.runtime = s.api != "driver";
    CallView& view = s.view;
    view.who.pid |= options.per_process || options.per_thread;
    view.who.thread |= options.per_thread;
    view.who.owner = options.extra_columns;
    view.stack = options.user_stacks && !s.events;
    view.who.pid |= view.stack;
    view.layer = s.api == "both";
    view.result = options.failed_only;
    options_ = options;
    settle();
}

std::vector<Library> CallTool::layers() const
{
    if (!settings_.runtime)
        return {Library::driver};
    if (!settings_.driver)
        return {Library::runtime};
    return {Library::driver, Library::runtime};
}

std::span<const Probe> CallTool::probes()
{
    if (probes_.empty())
        probes_ = choose_probes();
    return probes_;
}

void CallTool::size_tables(bpf_object* object, KeyParts also) const
{
    const CallView& view = settings_.view;
    const bool stacks = options_.user_stacks || also.stack;
    const bool measured = needs_returns() || view.function || settings_.histogram();
    const size_t key_bytes = view.who.by_owner()              ? sizeof(call_key)
                             : stacks                         ? offsetof(call_key, cgroups)
                             : view.stream                    ? offsetof(call_key, caller)
                             : also.thread || view.who.thread ? offsetof(call_key, stack)
                             : measured                       ? offsetof(call_key, tid)
                                                              : offsetof(call_key, result);
    const size_t row_bytes = key_bytes + sizeof(call_stats) * static_cast<size_t>(libbpf_num_possible_cpus());
    const size_t rows =
        options_.table_rows ? options_.table_rows : std::clamp<size_t>(table_bytes / row_bytes, 4096, 16384);
    bpf_map* calls = bpf_object__find_map_by_name(object, "calls");
    bpf_map__set_key_size(calls, static_cast<uint32_t>(key_bytes));
    bpf_map__set_max_entries(calls, static_cast<uint32_t>(rows));
    if (!stacks)
        bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "stacks"), 1);
}

void CallTool::load()
{
    if (int error = load_skeleton())
        throw Error("the kernel refused the BPF programs: " + errno_text(-error),
                    "run it again with -vv for the reason");
    auto fd = [this](const char* map) { return bpf_object__find_map_fd_by_name(object(), map); };
    table_.emplace(fd("calls"));
    processes_.emplace(fd("processes"), options_.host_root);
    stacks_fd_ = fd("stacks");
}

void CallTool::record(Output& output, const void* data, size_t size)
{
    uint32_t type = 0;
    memcpy(&type, data, sizeof(type));
    if (type == RECORD_PROCESS && size >= sizeof(process_record))
        processes_->learn(*static_cast<const process_record*>(data));
    else if (type == RECORD_CALL && size >= sizeof(call_event))
        print_event(output, *static_cast<const call_event*>(data));
    else if (type == RECORD_SPILL && size >= sizeof(call_event))
        table_->add(*static_cast<const call_event*>(data));
    else
        learn(type, data, size);
}

void CallTool::executed(pid_t pid, uint64_t time_ns)
{
    if (processes_->executed(static_cast<uint32_t>(pid), time_ns))
        leaving_.insert(static_cast<uint32_t>(pid));
}

bool CallTool::tick(Output& output)
{
    retire_processes();
    collect();
    if (!shows_rows()) {
        ended(output, gone_);
        forget_processes();
    }
    return false;
}

void CallTool::settle_ended(Output& output)
{
    leaving_.merge(processes_->pids());
    CallTool::tick(output);
}

void CallTool::collect()
{
    if (settings_.events)
        return;
    for (CallDelta& delta : table_->take()) {
        processes_->info(delta.key.image);
        if (settings_.view.stack)
            frames(delta.key.image, delta.key.stack, delta.key.caller);
        look_at(delta);
        if (shows_rows())
            pending_.push_back(delta);
    }
}

// Rows of processes that have ended leave the kernel with the next collect(); names and labels stay until printed.
void CallTool::retire_processes()
{
    const std::vector<ImageId> gone = processes_->gone_of(leaving_);
    for (const ImageId& image : gone) {
        table_->retire(image);
        gone_.insert(image);
        retired(image);
    }
    if (!gone.empty())
        erase_state(gone);
}

std::vector<const char*> CallTool::tables_of(std::span<const ImageId>)
{
    return {"captures", "capturing_streams", "captured_events", "contexts", "primaries"};
}

void CallTool::erase_state(std::span<const ImageId> gone)
{
    for (const char* name : tables_of(gone))
        if (const bpf_map* map = bpf_object__find_map_by_name(object(), name))
            erase_images(bpf_map__fd(map),
                         [&](const image& image) { return std::ranges::find(gone, ImageId(image)) != gone.end(); });
}

void CallTool::forget_processes()
{
    if (gone_.empty())
        return;
    for (const ImageId& image : gone_)
        symbols_.forget(image);
    forget(gone_);
    processes_->forget(gone_);
    gone_.clear();
}

void CallTool::report(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    if (!shows_rows())
        return;
    collect();
    processes_->refresh();
    print(output, pending_, wall_ns, static_cast<double>(interval_ns) / 1e9);
    pending_.clear();
    forget_processes();
}

std::vector<std::string> CallTool::frames(const ImageId& image, int32_t stack, uint64_t caller)
{
    // The caller, then what frame pointers lead to: the first entry is the probed function itself.
    std::vector<uint64_t> addresses;
    if (settings_.of_functions)
        addresses.push_back(caller);
    uint64_t walked[127]{};
    const bool without_first = stack & STACK_WITHOUT_FIRST || !settings_.of_functions;
    const int32_t id = stack & ~STACK_WITHOUT_FIRST;
    if (stack >= 0 && bpf_map_lookup_elem(stacks_fd_, &id, walked) == 0)
        for (size_t i = without_first ? 0 : 1; i < std::size(walked) && walked[i]; i++)
            addresses.push_back(walked[i]);
    return symbols_.frames(image, addresses);
}

std::vector<std::string> CallTool::event_frames(const call_event& event)
{
    if (!options_.user_stacks)
        return {};
    return frames(event.key.image, event.key.stack, event.key.caller);
}

std::vector<std::string> CallTool::row_frames(const CallKey& key, const WhoSeen& seen)
{
    if (!settings_.view.stack)
        return {};
    return frames(*seen.images.begin(), key.stack, key.caller);
}

} // namespace gpusnoop
