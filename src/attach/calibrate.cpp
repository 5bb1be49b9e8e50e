// SPDX-License-Identifier: Apache-2.0
#include "attach/calibrate.hpp"

#include "attach/links.hpp"
#include "attach/refusal.hpp"
#include "base/bpf_map.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "calibrate.skel.h"
#include "proc/process.hpp"
#include "reader/message.hpp"

#include <algorithm>
#include <array>
#include <bpf/libbpf.h>
#include <chrono>
#include <fcntl.h>
#include <unistd.h>

// The probed function, gpusnoop_do_nothing(), begins with an instruction that the kernel emulates. So do the functions
// of CUDA libraries.
#if defined(__aarch64__)
#define DO_NOTHING "adr x16, ."
#else
#define DO_NOTHING "push %rbp; pop %rbp"
#endif
asm(R"(
    .pushsection .text
    .type gpusnoop_do_nothing, %function
gpusnoop_do_nothing:
    )" DO_NOTHING R"(
    ret
    .size gpusnoop_do_nothing, . - gpusnoop_do_nothing
    .popsection
)");
extern "C" void gpusnoop_do_nothing();

namespace gpusnoop {

static void fields(auto& each, same_as_const<ProbeCost> auto& c)
{
    each(c.entry_ns, c.return_ns);
}

namespace {

constexpr const char* own_file = "/proc/self/exe";

// Returns a CudaFile with this program's empty function as the only place to probe. Throws Error.
CudaFile own_function()
{
    const auto address = reinterpret_cast<uint64_t>(&gpusnoop_do_nothing);
    const auto all = mappings(getpid());
    const auto mapping =
        std::ranges::find_if(all, [&](const Mapping& m) { return address >= m.start && address < m.end; });
    CudaFile self;
    self.path = own_file;
    self.file = Fd(open(own_file, O_RDONLY | O_CLOEXEC));
    if (mapping == all.end() || !self.file)
        throw Error("cannot read this program's own file");
    self.places.push_back({.probe = 0, .offset = address - mapping->start + mapping->file_offset});
    return self;
}

class Calibration {
public:
    // The constructor and attach() throw Error.
    explicit Calibration(Tier tier) : linker_(skeleton_->obj, tier, hooks_, [] {})
    {
        const LoadLog log;
        if (const int error = calibrate_bpf::load(skeleton_.get()))
            throw Error(refusal_of(-error, log.text()).text());
    }

    // Attaches to the function's entry and, if `returns` is set, also to its return.
    Links attach(bool returns)
    {
        Links links;
        linker_.attach(hooks_[returns ? 1 : 0], {self_, getpid()}, links);
        return links;
    }

    // Calls the function once and returns true if that was recorded.
    bool is_hit() const
    {
        gpusnoop_do_nothing();
        return skeleton_->bss->taken != 0;
    }

    // Calls the function until the sample buffer is full. Returns the median sample, or nullopt if no call was
    // recorded.
    std::optional<uint64_t> median() const
    {
        auto& data = *skeleton_->bss;
        for (size_t i = 0; i < std::size(data.samples); i++)
            gpusnoop_do_nothing();
        if (!data.taken)
            return std::nullopt;
        auto* middle = data.samples + data.taken / 2;
        std::nth_element(data.samples, middle, data.samples + data.taken);
        return *middle;
    }

private:
    Skeleton<calibrate_bpf> skeleton_ = open_skeleton<calibrate_bpf>();
    const CudaFile self_ = own_function();
    const std::array<Hook, 2> hooks_{Hook{.program = "calibrate", .probes = {0}},
                                     Hook{.program = "calibrate", .returns = true, .probes = {0}}};
    Linker linker_;
};

// Returns the time per call in ns, with the probes that are attached now. Takes the minimum of several tries, because
// other processes disturb some of them.
double time_of_a_call()
{
    constexpr int tries = 9, calls = 200;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < tries; i++) {
        const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
        for (int call = 0; call < calls; call++)
            gpusnoop_do_nothing();
        least = std::min(least, clock_ns(CLOCK_MONOTONIC) - begin);
    }
    return static_cast<double>(least) / calls;
}

// Returns the tier in which to measure: perf instead of tracefs, because a killed helper would leave its uprobe event
// in tracefs.
Tier measured_in(Tier tier)
{
    return tier == Tier::tracefs ? Tier::perf : tier;
}

std::optional<ProbeCost> probe_cost(Tier tier)
try {
    Calibration calibration(measured_in(tier));
    const double none = time_of_a_call();
    Links links = calibration.attach(false);
    const double entry = time_of_a_call();
    links.clear();
    links = calibration.attach(true);
    const double both = time_of_a_call();
    return ProbeCost{.entry_ns = std::max(entry - none, 0.0), .return_ns = std::max(both - entry, 0.0)};
} catch (const Error&) {
    return std::nullopt;
}

} // namespace

std::optional<uint64_t> duration_floor_ns(Tier tier)
try {
    Calibration calibration(measured_in(tier));
    const Links links = calibration.attach(true);
    return calibration.median();
} catch (const Error&) {
    return std::nullopt;
}

ProbeCostMeter::ProbeCostMeter(Tier tier)
{
    helper_.emplace([tier](Helper::Task& task) { task.connection.send(message_of(probe_cost(tier))); });
}

// Kills the helper and waits for its exit. That takes long, because the kernel detaches the helper's probes.
ProbeCostMeter::~ProbeCostMeter()
{
    if (helper_)
        helper_->kill();
    for (int tries = 0; tries < 3000 && helper_ && !helper_->ended(); tries++)
        usleep(1000);
}

const std::optional<ProbeCost>& ProbeCostMeter::cost()
{
    // Check for the helper's exit before receive(). In the other order, a message sent just before the exit could be
    // missed.
    const bool ended = helper_ && helper_->ended();
    if (helper_ && !cost_)
        if (const auto message = helper_->connection().receive(std::chrono::milliseconds(0)))
            cost_ = read_message<std::optional<ProbeCost>>(message->bytes).value_or(std::nullopt);
    if (ended)
        helper_.reset();
    return cost_;
}

std::string why_tier_fails(Tier tier)
try {
    Calibration calibration(tier);
    const Links links = calibration.attach(true);
    return calibration.is_hit() ? std::string() : "the kernel accepted the probes, but they are not hit";
} catch (const Error& error) {
    return error.what();
}

} // namespace gpusnoop
