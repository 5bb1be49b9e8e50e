// SPDX-License-Identifier: Apache-2.0
#include "run/call_tool.hpp"

#include "bpf/shared/record.h"
#include "bpf/shared/stack.h"
#include "run/command_line.hpp"
#include "run/ring.hpp"

#include <algorithm>
#include <array>
#include <bpf/bpf.h>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace gpusnoop {
namespace {

// Calls that did not fit into the kernel's table are collected in rows until the next tick. When they fill this many
// rows, they are processed at once, to limit memory.
constexpr size_t spilled_max = 32'768;
// Maximum number of exited processes whose rows stay separate until the next report. Beyond it, their rows are merged.
constexpr size_t exited_max = 16'384;

// Maps whose keys begin with an image (an executed program of a process). Each tool's BPF object has only some of these
// maps.
constexpr const char* maps_by_image[] = {
    "captures",      "capturing_streams", "captured_events", "contexts",      "primaries",
    "legacy_shapes", "correlated",        "graphs",          "execs",         "address_spaces",
    "allocations",   "physical_memory",   "ranges",          "context_bytes",
};

} // namespace

void CallTool::add_call_options(const std::string& by, const std::string& by_default, const std::string& measures,
                                bool by_stream)
{
    CommandLine& line = command_line();
    CallSettings& s = settings_;
    usual_sort_ = s.sort;
    line.text("--by", "WHAT[,WHAT]",
              fmt::format("rows by {}{}{}{}, or several ({})", by, s.of_functions && by_stream ? "stream, " : "",
                          s.of_functions ? "device, api, line, function, " : "", WhoView::names, by_default),
              s.by);
    line.flag("-e,--events", "one line per call", s.events);
    line.text("-H,--hist", "WHAT", "histogram of " + measures, [&s, measures](const std::string& text) {
        if (text.empty())
            throw UsageError("--hist: -H takes " + measures);
        s.measure = text;
    });
    line.number("--depth", "FRAMES", "show at most FRAMES per stack, and count the rest", s.stacks.depth, {1, 10'000});
    if (s.of_functions) {
        line.flag("--native", "include interpreter frames in Python stacks", s.stacks.native);
        line.texts("--skip", "GLOB", "files to pass over when looking for the calling line (--by line, --by function)",
                   [&skip = s.stacks.skip](const std::string& glob) { skip.push_back(glob); });
        line.text("--api", "LAYER", "layer at which to count: driver (default), runtime or both", s.api);
    }
    line.text("-s,--sort", "COLUMN", fmt::format("column to sort by ({})", s.sort), s.sort);
}

void CallTool::add_least(std::string_view what, uint64_t& least_ns)
{
    command_line().text("-l,--least", "MIN_US",
                        fmt::format("only {} that last at least this many microseconds (or 5ms, 2s)", what),
                        [&least_ns](const std::string& text) {
                            using namespace std::chrono_literals;
                            const auto least = time_argument("a minimum duration (-l)", text, "us", 0ns, 240h);
                            least_ns = static_cast<uint64_t>(least.count());
                        });
}

void CallTool::add_ceiling()
{
    command_line().text("--max-overhead", "PERCENT",
                        "cap probe overhead at PERCENT of a process's CPU time: beyond it, calls are sampled",
                        [&percent = settings_.max_overhead](const std::string& text) {
                            percent = number_argument<double>("a maximum overhead (--max-overhead)", text, 1, 100);
                        });
}

std::string CallTool::at_least(uint64_t least_ns, std::string_view more)
{
    return least_ns ? fmt::format(" of {} or {}", duration_text(std::chrono::nanoseconds(least_ns)), more)
                    : std::string();
}

RunPlan CallTool::begin_plan()
{
    const Options& options = options_;
    CallSettings& s = settings_;
    if (s.api != "driver" && s.api != "runtime" && s.api != "both")
        throw UsageError(fmt::format("--api takes driver, runtime or both, not '{}'", s.api));
    if (s.events && s.histogram())
        throw UsageError("choose lines (-e) or histograms (-H), not both");
    if (options.user_stacks && s.histogram())
        throw UsageError("a histogram has no stacks: leave out -U or -H");
    if (!s.histogram() && (options.per_process || options.per_thread))
        throw UsageError("-P and -L are for histograms (-H); for tables use --by pid or --by thread");
    if (!options.columns.empty() && (s.events || s.histogram()))
        throw UsageError("--columns is for tables: leave out -e and -H, or --columns");
    s.apply(options);
    s.latency |= s.events && !options.trace.empty(); // the timeline needs durations
    shows_rows_ = !s.events;
    RunPlan plan{.traced = {}, .noun = {}, .counts_runtime = s.runtime, .lines = s.events};
    plan.replay.emplace();
    plan.hooks.begin.emplace_back([this](const Running& running) { begin_calls(running); });
    plan.hooks.before_print = [this] { read_rows(); };
    plan.hooks.after_print = [this](Output& output) { end_report(output); };
    return plan;
}

RunPlan CallTool::finish_plan(RunPlan plan)
{
    const CallSettings& s = settings_;
    plan.replay->by = s.by;
    plan.replay->sort = s.sort == usual_sort_ ? "" : s.sort;
    plan.replay->usual_sort = usual_sort_;
    if ((s.view.line || s.view.code) && s.events)
        throw UsageError("--by line and --by function are for tables: to show the callers of each line (-e), use -U");
    options_.user_stacks |= s.view.line || s.view.code;
    if (s.histogram())
        plan.noun += " for a histogram of " + s.measure;
    plan.durations = s.latency;
    plan.needs_returns |= follows_calls();
    needs_returns_ = plan.needs_returns;
    plan.by_process = s.max_overhead.has_value();
    if (plan.by_process)
        check_ceiling(plan);
    for (Program& program : plan.programs)
        if (program.sampled &= plan.by_process; program.sampled)
            sampled_hooks_.emplace_back(program.name);
    return plan;
}

// Rejects options that --max-overhead cannot be combined with.
void CallTool::check_ceiling(const RunPlan& plan) const
{
    if (settings_.events)
        throw UsageError("--max-overhead samples calls, and -e prints a line for every call: leave out one of them");
    if (plan.needs_returns)
        throw UsageError("--max-overhead samples calls at their entry, and durations and results need their return: "
                         "leave out --max-overhead, or the option that needs returns (-l, -x, -H)");
    if (settings_.runtime)
        throw UsageError("--max-overhead samples driver calls only: leave out --api");
}

uint32_t CallTool::python_places() const
{
    if (!settings_.of_functions || !keeps_stacks() || !UserStacks::can_follow_python())
        return 0;
    return options_.user_stacks ? PYTHON_STACKS : PYTHON_SAMPLES;
}

Layers CallTool::counted() const
{
    return !settings_.runtime ? Layers::driver : settings_.driver ? Layers::both : Layers::runtime_and_hip;
}

std::string CallTool::traced(std::string_view what) const
{
    const Layers of = counted();
    return fmt::format("{}{}{}", options_.failed_only ? "failed " : "", what,
                       of == Layers::both              ? " (driver and runtime)"
                       : of == Layers::runtime_and_hip ? " (runtime)"
                                                       : "");
}

void CallTool::configure(const Filters&)
{
    configure_calls();
    const bool stacks = keeps_stacks();
    UserStacks::follow_python(bpf_, python_places());
    UserStacks::follow_windows(bpf_, options_.user_stacks ? WINDOW_STACKS : stacks ? WINDOW_SAMPLES : 0);
    size_tables();
}

// Sets the variables of call.bpf.h, which all tools that count calls include.
void CallTool::configure_calls() const
{
    const CallView& view = settings_.view;
    bpf_.set("per_thread", view.who.thread);
    bpf_.set("name_threads", view.who.thread);
    bpf_.set("per_cgroup", view.who.by_owner() || settings_.events);
    bpf_.set("per_stream", view.stream || settings_.events);
    bpf_.set("per_device", view.device);
    bpf_.set("per_function", view.function || settings_.events);
    bpf_.set("per_stack", options_.user_stacks);
    bpf_.set("emit_events", settings_.events);
    bpf_.set("need_return", follows_calls());
    bpf_.set("only_failed", options_.failed_only);
    bpf_.set("measure_latency", settings_.latency);
    bpf_.set<uint64_t>("duration_unit_ns", settings_.histogram() ? options_.unit_ns() : 1);
    bpf_.set("count_runtime", settings_.runtime);
}

// Sets the sizes of maps, and the BPF programs' constants that repeat these sizes.
void CallTool::size_tables() const
{
    const CallView& view = settings_.view;
    const bool stacks = keeps_stacks();
    const bool measured = needs_returns_ || view.function || settings_.histogram();
    const size_t key_bytes = view.who.by_owner()                    ? sizeof(call_key)
                             : stacks                               ? offsetof(call_key, cgroups)
                             : view.stream                          ? offsetof(call_key, caller)
                             : key_parts_.thread || view.who.thread ? offsetof(call_key, stack)
                             : measured                             ? offsetof(call_key, tid)
                                                                    : offsetof(call_key, result);
    const auto cpus = static_cast<size_t>(libbpf_num_possible_cpus());
    const size_t rows = options_.table_rows ? options_.table_rows : rows_for(key_bytes, cpus);
    const uint32_t front_bits = front_bits_for(rows, cpus);
    bpf_map__set_key_size(bpf_.map("calls"), static_cast<uint32_t>(key_bytes));
    bpf_.resize("calls", static_cast<uint32_t>(rows));
    bpf_.resize("front", static_cast<uint32_t>(cpus << front_bits));
    if (!stacks)
        bpf_.resize("stacks", 1);
    if (view.who.thread)
        bpf_.resize("thread_names", Processes::thread_names_max);
    const uint32_t lines = settings_.events ? Lines::places_in(uint64_t{options_.ring_mb} << 20) : 0;
    bpf_.resize("lines", 1 + lines);
    bpf_.set("call_key_bytes", static_cast<uint32_t>(key_bytes));
    bpf_.set("front_bits", front_bits);
    bpf_.set("line_places", lines);
    bpf_.set<uint64_t>("line_wake", Lines::wake_bits(lines));
}

void CallTool::load()
{
    pending_ = CallSums(CallSums::limit_for(options_.interval));
    const auto fd = [this](const char* map) { return bpf_.fd(map); };
    shares_.emplace(bpf_.get());
    table_.emplace(
        std::make_unique<KernelCallRows>(fd("calls"), fd("front"), *bpf_.find<uint8_t>("generation"), *shares_),
        shows_maxima_.value_or(settings_.latency && shows_rows_));
    Tool::load();
    processes_->read_threads_from(fd("thread_names"));
    begin_stacks();
    if (fd("held") >= 0)
        held_.emplace(fd("held"), fd("held_beyond"));
    if (const int spaces = fd("address_spaces"); spaces >= 0)
        epochs_.emplace(spaces, std::array{fd("allocations"), fd("physical_memory")}, fd("ranges"));
    if (settings_.events)
        lines_.emplace(line_fields_, call_context(settings_, 0));
}

void CallTool::begin_calls(const Running& running)
{
    if (running.probes && keeps_stacks())
        stacks_->track(running.users(), options_.user_stacks);
    if (settings_.max_overhead && running.probes)
        sampling_.emplace(running, bpf_.get(),
                          Sampling::Settings{*settings_.max_overhead, sampled_hooks_, [this] { read_rows(); }});
}

void CallTool::record(Output& output, const RingRecord& record)
{
    if (const auto* event = record.as<call_event>(RECORD_CALL); event && lines_)
        print_line(output, *event);
    else if (const auto* call = record.as<call_event>(RECORD_SPILL))
        spill(*call);
    else if (const auto* replaced = record.as<holding_record>(RECORD_REPLACED))
        holdings_.learn(*replaced);
    else if (const auto* ended = record.as<holding_record>(RECORD_CONTEXT_ENDED))
        holdings_.learn(*ended);
}

void CallTool::print_line(Output& output, const call_event& event)
{
    CallLine line{event};
    if (fill_line_ && !fill_line_(line))
        return;
    Frames below;
    if (options_.user_stacks)
        below = frames(event.key.image, event.key.stack, event.key.caller);
    lines_->print(output, std::move(line), below);
}

// Adds a call that did not fit into the kernel's table. If these calls fill spilled_max rows, processes the rows at
// once instead of at the next tick, to limit memory.
void CallTool::spill(const call_event& event)
{
    table_->add(event);
    if (table_->spilled() >= spilled_max)
        pass_on(table_->drain_spilled());
}

void CallTool::begin_stacks()
{
    UserStacks::Kernel kernel = UserStacks::kernel_of(bpf_, "stacks");
    kernel.starts_in_probe = settings_.of_functions;
    user_stacks_ = &stacks_.emplace(kernel, settings_.stacks, &wait_budget_);
    stacks_->begin(options_.pids);
    const CallView& view = settings_.view;
    if (!view.by_place())
        return;
    const auto by = view.stack ? CodePlaces::By::stack : view.line ? CodePlaces::By::line : CodePlaces::By::function;
    places_.emplace(by, CodePlaces::Source{[this](const ImageId& image, int32_t stack, uint64_t caller) {
                                               return frames(image, stack, caller);
                                           },
                                           [this](const ImageId& image, int32_t stack, uint64_t caller) {
                                               return stacks_->place(image, stack, caller);
                                           }});
    settings_.view.places = &*places_;
}

bool CallTool::tick(Output&)
{
    if (!shows_rows_)
        forget_processes();
    if (held_)
        held_->make_room(holdings_);
    const std::vector<ImageId> exited = retire_processes();
    stacks_->tick();
    read_rows();
    erase_state(exited);
    if (epochs_)
        epochs_->sweep();
    if (shows_rows_ && exited_.size() > exited_max) {
        pending_.merge(exited_);
        forget_processes();
    }
    return false;
}

// Reads the kernel's table. Called before each report, at the start and end of each sampling window, and at each tick.
// At a tick, this must be after the exits of processes are recorded, and before their state is erased.
void CallTool::read_rows()
{
    if (!settings_.events)
        pass_on(table_->drain());
    holdings_.apply_ended_contexts();
}

void CallTool::pass_on(std::span<const CallDelta> deltas)
{
    std::set<ImageId> seen; // processes already looked up: a process may have thousands of rows
    for (const CallDelta& delta : deltas) {
        const bool is_new = seen.insert(delta.key.image).second;
        if (is_new)
            processes_->info(delta.key.image);
        if (settings_.view.who.thread)
            processes_->thread_name(delta.key.image, delta.key.tid);
        if (is_new && options_.writes_json())
            // caches the command line, which cannot be read after the process has exited
            processes_->command_line(delta.key.image);
        if (settings_.view.by_place())
            frames(delta.key.image, delta.key.stack, delta.key.caller);
        if (held_ && part_of(delta.key) == CallPart::memory)
            holdings_.add(delta);
        this->delta(delta);
        if (shows_rows_ && !(sampling_ && sampling_->absorb(delta)))
            pending_.add(delta);
    }
}

// Makes the next read_rows() remove the rows of exited processes from the kernel side's table. The processes' names are
// kept until these rows are printed.
std::vector<ImageId> CallTool::retire_processes()
{
    std::vector<ImageId> exited = processes_->extract_exited(leaving_);
    for (const ImageId& image : exited) {
        table_->retire(image);
        exited_.insert(image);
        stacks_->on_exit(static_cast<pid_t>(image.pid));
    }
    return exited;
}

void CallTool::erase_state(std::span<const ImageId> exited)
{
    if (exited.empty())
        return;
    if (before_erase_)
        before_erase_();
    shares_->release(exited);
    std::vector<const char*> names(std::begin(maps_by_image), std::end(maps_by_image));
    if (held_)
        add_held_tables(names, exited, holdings_, !settings_.events);
    for (const std::string_view name : names) {
        const bpf_map* const map = bpf_.map(std::string(name));
        if (!map)
            continue;
        const size_t erased = erase_images(bpf_map__fd(map), [&](const image& image) {
            return std::ranges::find(exited, ImageId(image)) != exited.end();
        });
        if (name == "captures")
            __atomic_fetch_sub(bpf_.find<uint64_t>("captures_open"), erased, __ATOMIC_RELAXED);
    }
}

void CallTool::forget_processes()
{
    if (exited_.empty())
        return;
    // entries of this map are deleted only after the report, which shows the peaks that they hold
    const int held_bytes_fd = bpf_.fd("held_bytes");
    for (const ImageId& id : exited_) {
        stacks_->forget(id);
        const image image = id;
        if (held_bytes_fd >= 0)
            bpf_map_delete_elem(held_bytes_fd, &image);
    }
    forget(exited_);
    holdings_.forget(exited_);
    processes_->forget(exited_);
    exited_.clear();
}

std::span<const CallDelta> CallTool::calls()
{
    processes_->refresh();
    if (sampling_) {
        for (const CallDelta& delta : sampling_->drain())
            pending_.add(delta);
        processes_->set_sampled(sampling_->sampled());
    }
    if (places_)
        places_->clear();
    return pending_.rows();
}

void CallTool::end_report(Output& output)
{
    if (!shows_rows_)
        return;
    const Loss merged{"calls_merged",
                      "calls were merged into coarser rows: the report had too many rows (shorten the interval, or "
                      "group by fewer keys)",
                      pending_.merged()};
    output.lost({&merged, 1});
    pending_.clear();
    forget_processes();
}

Frames CallTool::frames(const ImageId& image, int32_t stack, uint64_t caller)
{
    return UnwoundStacks::is(stack) ? stacks_->frames(image, found_stacks_.of(stack))
                                    : stacks_->frames(image, stack, caller);
}

std::string CallTool::calling_line(const ImageId& image, int32_t stack, uint64_t caller)
{
    const CodePlace place = UnwoundStacks::is(stack) ? CodePlace() : stacks_->place(image, stack, caller);
    return place.line ? line_text(place) : calling_function(frames(image, stack, caller).lines);
}

Frames CallTool::row_frames(const CallKey& key)
{
    return settings_.view.stack && key.place >= 0 ? places_->frames(key.place) : Frames();
}

} // namespace gpusnoop
