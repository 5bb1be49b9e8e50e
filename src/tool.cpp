// SPDX-License-Identifier: Apache-2.0
#include "tool.hpp"

#include "calibrate.hpp"
#include "clock.hpp"
#include "error.hpp"
#include "loop.hpp"
#include "losses.hpp"
#include "mapping_watch.hpp"
#include "preflight.hpp"
#include "process.hpp"
#include "scope.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cerrno>
#include <chrono>
#include <fmt/ranges.h>
#include <optional>
#include <set>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

using namespace std::chrono_literals;

int libbpf_log(libbpf_print_level level, const char* format, va_list arguments)
{
    if (verbosity() < 2 && level == LIBBPF_DEBUG)
        return 0;
    // Its warnings explain a failure only to those who know it; ours are sentences.
    return verbosity() < 2 ? 0 : vfprintf(stderr, format, arguments);
}

// Puts keys into a set of the kernel side.
template<class Key>
void fill(bpf_object* object, const char* map, const std::vector<Key>& keys, std::string_view what)
{
    const int fd = bpf_object__find_map_fd_by_name(object, map);
    for (const Key& key : keys) {
        const uint8_t yes = 1;
        if (bpf_map_update_elem(fd, &key, &yes, BPF_ANY))
            throw Error(fmt::format("{} {} are too many", keys.size(), what),
                        "trace all of them: leave the option out");
    }
}

struct RingDeleter {
    void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

// One run, from the parsed command line to the last report.
class Run {
public:
    // Throws where what was asked for does not exist.
    Run(Tool& tool, Options& options) : tool_(tool), options_(options), scope_(options) {}
    void run();

private:
    bool returns_are_safe() const;
    void attach();
    Filters choose_probes(bpf_object* object);
    void library_mapped(pid_t pid, std::string_view path, uint64_t device, uint64_t inode);
    void forked(pid_t pid, pid_t parent);
    void exited(pid_t pid);
    void announce();
    void look_for_trouble();
    void say_summary();
    void print_attached();
    std::string attached() const;
    void complain();
    void watch_processes();
    void watch_targets();
    void look_at_members();
    void set_timers();
    void look_at(pid_t pid);
    void tick();
    void report();
    void finish();

    Tool& tool_;
    Options& options_;
    Scope scope_;
    std::unique_ptr<Output> output_;
    std::span<const Probe> probes_;
    std::optional<Attacher> attacher_;
    std::optional<Losses> losses_;
    std::unique_ptr<ring_buffer, RingDeleter> ring_;
    std::optional<MappingWatch> mapping_watch_;
    std::optional<Loop> loop_;
    std::set<pid_t> members_; // as of the last look
    std::set<pid_t> leaving_; // members whose first thread has ended
    size_t complaints_shown_ = 0;
    bool waiting_ = false;
    uint64_t started_ns_ = 0;
    uint64_t interval_began_ns_ = 0;
    uint64_t reports_ = 0;
};

void Run::run()
{
    preflight();
    output_ = tool_.make_output(options_);
    attach();
    loop_.emplace();
    watch_processes();
    watch_targets();
    set_timers();
    started_ns_ = clock_ns(CLOCK_MONOTONIC);
    announce();
    tool_.begin({.loop = *loop_,
                 .report = [this] { report(); },
                 .attached = [this] { return attached(); },
                 .lost = [this] { return losses_->sum(); }});
    loop_->run();
    finish();
}

// Return probes can be used without killing a target.
bool Run::returns_are_safe() const
{
    if (!scope_.pids().empty() && std::ranges::none_of(scope_.pids(), has_seccomp_filter))
        return true;
    return !return_probes_break_seccomp();
}

void Run::attach()
{
    probes_ = tool_.probes();
    bpf_object* object = tool_.open();
    Filters filters = probes_.empty() ? Filters{.pids = !scope_.pids().empty()} : choose_probes(object);
    if (const auto& cgroup = scope_.cgroup()) {
        filters.cgroups = true;
        filters.cgroups_v1 = !cgroup->v2();
        filters.v1 = cgroup->controller();
    }
    if (filters.v1 == CONTROLLER_NONE)
        filters.v1 = v1_controller(cgroup_mounts(options_.host_root));
    tool_.configure(options_, probes_, filters);
    bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "ring"), options_.ring_mb << 20);
    tool_.load();
    fill(object, "target_pids", scope_.pids(), "processes (-p)");
    if (scope_.cgroup())
        fill(object, "target_cgroups", scope_.cgroup()->ids(), "cgroups (-c)");
    losses_.emplace(bpf_object__find_map_fd_by_name(object, "losses"));
    ring_.reset(ring_buffer__new(
        bpf_object__find_map_fd_by_name(object, "ring"),
        [](void* self, void* data, size_t size) {
            auto* run = static_cast<Run*>(self);
            run->tool_.record(*run->output_, data, size);
            return 0;
        },
        this, nullptr));
    if (!ring_)
        throw Error("the event buffer cannot be mapped: " + errno_text(errno), "try a smaller one with --ring-mb");
    // Before the first look, so that nothing that appears meanwhile is missed.
    mapping_watch_.emplace(MappingWatch::Handlers{
        .mapped = [this](pid_t pid, std::string_view path, uint64_t device,
                         uint64_t inode) { library_mapped(pid, path, device, inode); },
        .forked = [this](pid_t pid, pid_t parent) { forked(pid, parent); },
        .exited = [this](pid_t pid) { exited(pid); },
        .executed = [this](pid_t pid, uint64_t time_ns) { tool_.executed(pid, time_ns); },
        .lost =
            [this] {
                if (attacher_)
                    attacher_->look_everywhere();
            },
    });
    interval_began_ns_ = clock_ns(CLOCK_MONOTONIC); // the first file's calls count while the others are looked for
    if (attacher_)
        attacher_->look_everywhere();
    if (KernelHooks* hooks = tool_.kernel_hooks())
        hooks->look();
    tick(); // what is running already is unnamed
}

// Between open and load.
Filters Run::choose_probes(bpf_object* object)
{
    const Tier tier = options_.attach.empty() ? best_tier() : tier_from_name(options_.attach);
    std::vector<Hook> hooks = tool_.hooks(probes_);
    const bool returns = returns_are_safe();
    if (!returns) {
        const char* why = "return probes kill processes under seccomp (most containers) on this kernel, "
                          "which lacks commit cf6cb56ef244";
        if (tool_.needs_returns())
            throw Error(fmt::format("this needs return probes, and {}", why),
                        "update the kernel, leave out latency and results, or give processes without a filter (-p)");
        warn(fmt::format("{}: {}", why, tool_.without_returns()));
        std::erase_if(hooks, [](const Hook& hook) { return hook.returns; });
    }
    const bool filter_at_attach = tier > Tier::multi || multi_filters_processes();
    attacher_.emplace(object, probes_, std::move(hooks), scope_,
                      Attacher::Options{.tier = tier,
                                        .count_runtime = tool_.counts_runtime(),
                                        .filter_at_attach = filter_at_attach,
                                        .again = [this] { tool_.attached_again(); }});
    // perf events and tracefs place breakpoints per memory, which a forked child has a copy of.
    return {
        .tier = tier, .returns = returns, .pids = !scope_.pids().empty() && (tier > Tier::multi || !filter_at_attach)};
}

void Run::library_mapped(pid_t pid, std::string_view path, uint64_t device, uint64_t inode)
{
    if (attacher_ && attacher_->targets().interesting(path, device, inode) && scope_.includes(pid))
        look_at(pid);
}

// The child of a member is one, with all that is mapped already.
void Run::forked(pid_t pid, pid_t parent)
{
    if (attacher_ && scope_.cgroup() && !attacher_->for_everybody() && attacher_->attached_to(parent) &&
        scope_.includes(pid))
        look_at(pid);
}

void Run::exited(pid_t pid)
{
    // The end of the last one asked for ends the run: what it held is shown as it was.
    if (scope_.pidfds().size() != 1 || !scope_.pidfds().contains(pid))
        tool_.exited(pid);
    if (attacher_ && scope_.pids().empty() && attacher_->attached_to(pid))
        leaving_.insert(pid);
}

void Run::announce()
{
    if (attacher_)
        look_for_trouble();
    if (KernelHooks* hooks = tool_.kernel_hooks(); hooks && !attacher_) {
        if (const std::string what = hooks->waits_for(); !what.empty()) {
            waiting_ = true;
            warn(what);
        }
    }
    say_summary();
    std::optional<uint64_t> floor;
    if (attacher_ && tool_.measures_durations() && (floor = duration_floor_ns(attacher_->tier())))
        warn(fmt::format("a call that takes no time shows as {:.2f} us: the probes' own share of each latency",
                         static_cast<double>(*floor) / 1000));
    output_->start(tool_.name(), GPUSNOOP_VERSION, floor);
    print_attached();
    output_->flush();
    output_->banner(fmt::format("Tracing {}...{}", tool_.traced(), options_.duration ? "" : " Hit Ctrl-C to end."));
}

// Of the libraries that were found. Throws Error where nothing will ever be traced.
void Run::look_for_trouble()
{
    if (!attacher_->in_use()) {
        const std::vector<std::string>& complaints = attacher_->complaints();
        if (!complaints.empty() && (!attacher_->files() || !scope_.everybody()))
            throw Error(
                fmt::format("CUDA libraries were found, but not one function in them can be probed: {}",
                            fmt::join(complaints, "; ")),
                "a damaged or stripped library, or a way of attaching (--attach) that this kernel does not have");
        waiting_ = true;
        const std::string who = scope_.cgroup()         ? "no process of cgroup " + scope_.cgroup()->what() + " maps a"
                                : scope_.pids().empty() ? "no process maps a"
                                                        : "the process maps no";
        warn(who + " CUDA library (libcuda.so*, libcudart*.so*) yet; waiting for one");
    }
    complain();
}

void Run::say_summary()
{
    if (attacher_)
        for (const std::string& line : attacher_->summary())
            verbose(line);
    if (const KernelHooks* hooks = tool_.kernel_hooks())
        for (const std::string& line : hooks->summary())
            verbose(line);
}

void Run::print_attached()
{
    if (attacher_)
        output_->attached(attacher_->functions(), attacher_->files(), tier_name(attacher_->tier()));
    else if (const KernelHooks* hooks = tool_.kernel_hooks())
        output_->attached(hooks->functions(), 0, hooks->ways());
}

std::string Run::attached() const
{
    return attacher_ ? fmt::format("{} functions in {} files, {}", attacher_->functions(), attacher_->files(),
                                   tier_name(attacher_->tier()))
                     : "nothing";
}

// Says once of each file why it could not be probed.
void Run::complain()
{
    const std::vector<std::string>& complaints = attacher_->complaints();
    for (; complaints_shown_ < complaints.size(); complaints_shown_++)
        warn(complaints[complaints_shown_]);
}

void Run::look_at(pid_t pid)
{
    const unsigned added = attacher_->look_at(pid);
    complain();
    if (waiting_ && attacher_->in_use()) {
        waiting_ = false;
        warn(fmt::format("process {} maps a CUDA library now; tracing", pid));
    }
    if (!added)
        return;
    say_summary();
    print_attached();
}

void Run::watch_processes()
{
    for (int fd : mapping_watch_->descriptors())
        loop_->watch(fd, [this] { mapping_watch_->drain(); });
    loop_->watch(ring_buffer__epoll_fd(ring_.get()), [this] { ring_buffer__consume(ring_.get()); });
    // Records come without a wake-up (bpf/common.bpf.h).
    loop_->every(100ms, [this] { ring_buffer__consume(ring_.get()); });
    loop_->every(1s, [this] {
        look_at_members();
        tick();
    });
    loop_->before_wait([this] { output_->flush(); });
}

void Run::watch_targets()
{
    for (auto& [target, fd] : scope_.pidfds()) {
        loop_->watch(fd.get(), [this, pid = target, descriptor = fd.get()] {
            loop_->remove(descriptor);
            scope_.pidfds().erase(pid);
            if (scope_.pidfds().empty())
                loop_->stop(); // the report comes first, then detaching
            else if (attacher_)
                attacher_->forget(pid);
        });
    }
}

// Members are told of when they map a library or are forked by another one. Those that were moved in are found here.
void Run::look_at_members()
{
    if (!scope_.cgroup())
        return;
    if (scope_.cgroup()->gone()) {
        warn(fmt::format("cgroup {} is gone", scope_.cgroup()->what()));
        return loop_->stop();
    }
    if (!attacher_)
        return;
    std::erase_if(leaving_, [this](pid_t pid) {
        if (!mappings(pid).empty())
            return false; // other threads go on
        attacher_->forget(pid);
        return true;
    });
    std::set<pid_t> members;
    for (pid_t pid : scope_.processes()) {
        members.insert(pid);
        if (!members_.contains(pid))
            look_at(pid);
    }
    members_ = std::move(members);
}

void Run::set_timers()
{
    if (const auto interval = options_.interval ? options_.interval : tool_.usual_interval())
        loop_->every(*interval, [this] {
            report();
            if (options_.count && reports_ >= options_.count)
                loop_->stop();
        });
    if (options_.duration)
        loop_->after(*options_.duration, [this] { loop_->stop(); });
}

void Run::tick()
{
    if (loop_)                             // nothing is printed before the start is
        ring_buffer__consume(ring_.get()); // what comes of a process that has ended comes before its end
    const bool arm = tool_.tick(*output_);
    if (KernelHooks* hooks = tool_.kernel_hooks(); hooks && loop_ && hooks->look()) {
        if (waiting_ && !attacher_ && hooks->waits_for().empty()) {
            waiting_ = false;
            warn("a GPU driver has been loaded; tracing");
        }
        say_summary();
        print_attached();
    }
    if (!attacher_ || arm == attacher_->armed())
        return;
    if (arm) {
        // Runtimes in libraries that came after the driver have not been looked for.
        attacher_->look_everywhere();
        tool_.armed(true);
    }
    attacher_->arm(arm);
    if (!arm)
        tool_.armed(false);
}

void Run::report()
{
    ring_buffer__consume(ring_.get());
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    tool_.report(*output_, clock_ns(CLOCK_REALTIME), now - interval_began_ns_);
    output_->lost(losses_->since_last());
    interval_began_ns_ = now;
    reports_++;
}

// The results come before detaching, which takes a while: Ctrl-C must look instant.
void Run::finish()
{
    if (!options_.count || reports_ < options_.count)
        report();
    output_->end(clock_ns(CLOCK_MONOTONIC) - started_ns_);
    output_->flush();
    tool_.over();
}

} // namespace

std::unique_ptr<Output> Tool::make_output(const Options& options)
{
    return options.json ? make_json_output() : make_text_output(options.timestamps);
}

int run_tool(int argc, char** argv, Tool& tool)
{
    set_tool_name(tool.name());
    libbpf_set_print(libbpf_log);
    CLI::App app{std::string(tool.summary()), std::string(tool.name())};
    app.footer("Examples:\n" + std::string(tool.examples()));
    Options options;
    add_shared_options(app, options, tool.attach_names());
    tool.add_options(app);
    if (auto code = parse_command_line(app, argc, argv, options))
        return *code;
    set_verbosity(options.verbosity);
    try {
        tool.check(options);
        Run(tool, options).run();
    } catch (const UsageError& error) {
        warn(error.what());
        return 2;
    } catch (const OutputClosed&) {
        // Whoever read the output has seen enough.
    } catch (const Error& error) {
        warn(error.what());
        if (!error.hint().empty())
            fmt::print(stderr, "hint: {}\n", error.hint());
        return 1;
    }
    return 0;
}

} // namespace gpusnoop
