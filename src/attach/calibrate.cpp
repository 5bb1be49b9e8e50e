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
#include <span>
#include <unistd.h>

// Begins with an instruction that the kernel emulates, as the functions of CUDA libraries do.
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

std::optional<uint64_t> file_offset(void (*function)())
{
    const auto address = reinterpret_cast<uint64_t>(function);
    for (const Mapping& mapping : mappings(getpid()))
        if (address >= mapping.start && address < mapping.end)
            return address - mapping.start + mapping.file_offset;
    return std::nullopt;
}

// A function of our own that does nothing, to be probed.
class Calibration {
public:
    explicit Calibration(Tier tier) : session_(tier == Tier::session), offset_(file_offset(&gpusnoop_do_nothing))
    {
        auto& programs = skeleton_->progs;
        bpf_program__set_autoload(programs.calibrate_session, session_);
        bpf_program__set_expected_attach_type(programs.calibrate_session,
                                              static_cast<bpf_attach_type>(uprobe_session_attach_type));
        loaded_ = offset_ && !calibrate_bpf::load(skeleton_.get());
    }

    // Its entry alone, or entry and return. Empty where that cannot be.
    Links attach(bool returns) const
    {
        Links links;
        if (!loaded_)
            return links;
        auto& programs = skeleton_->progs;
        if (returns && session_) {
            Fd link(create_link({.program = bpf_program__fd(programs.calibrate_session),
                                 .attach_type = uprobe_session_attach_type,
                                 .path = own_file,
                                 .offsets = &*offset_,
                                 .count = 1,
                                 .pid = getpid()}));
            if (link)
                links.push_back(own_link(std::move(link)));
            return links;
        }
        for (const bool on_return : {true, false}) {
            if (on_return && !returns)
                continue;
            bpf_program* program = on_return ? programs.calibrate_return : programs.calibrate_entry;
            bpf_link* link = bpf_program__attach_uprobe(program, on_return, getpid(), own_file, *offset_);
            if (!link)
                return {};
            links.push_back(own_link(link));
        }
        return links;
    }

    // Calls it often enough to fill the samples.
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
    bool session_;
    bool loaded_ = false;
    std::optional<uint64_t> offset_;
    Skeleton<calibrate_bpf> skeleton_ = open_skeleton<calibrate_bpf>();
};

// Nanoseconds that a call takes with what is attached now: the least of several tries, for the machine is shared.
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

std::optional<ProbeCost> probe_cost(Tier tier)
{
    const Calibration calibration(tier);
    const double none = time_of_a_call();
    Links links = calibration.attach(false);
    if (links.empty())
        return std::nullopt;
    const double entry = time_of_a_call();
    links.clear();
    links = calibration.attach(true);
    if (links.empty())
        return std::nullopt;
    const double both = time_of_a_call();
    return ProbeCost{.entry_ns = std::max(entry - none, 0.0), .return_ns = std::max(both - entry, 0.0)};
}

} // namespace

std::optional<uint64_t> duration_floor_ns(Tier tier)
{
    const Calibration calibration(tier);
    const Links links = calibration.attach(true);
    return links.empty() ? std::nullopt : calibration.median();
}

ProbeCostMeter::ProbeCostMeter(Tier tier)
{
    helper_.emplace([tier](Helper::Task& task) { task.connection.send(message_of(probe_cost(tier))); });
}

// The kernel takes its time to detach the probes of a process that is killed.
ProbeCostMeter::~ProbeCostMeter()
{
    if (helper_)
        helper_->kill();
    for (int tries = 0; tries < 3000 && helper_ && !helper_->ended(); tries++)
        usleep(1000);
}

const std::optional<ProbeCost>& ProbeCostMeter::cost()
{
    const bool ended = helper_ && helper_->ended(); // before what it sent is read
    if (helper_ && !cost_)
        if (const auto message = helper_->connection().receive(std::chrono::milliseconds(0)))
            cost_ = read_message<std::optional<ProbeCost>>(message->bytes).value_or(std::nullopt);
    if (ended)
        helper_.reset();
    return cost_;
}

std::string why_tier_fails(Tier tier)
try {
    const Skeleton<calibrate_bpf> skeleton = open_skeleton<calibrate_bpf>();
    const Hook hook{.program = "calibrate", .returns = true, .probes = {0}};
    const std::optional<uint64_t> offset = file_offset(&gpusnoop_do_nothing);
    CudaFile self;
    self.path = own_file;
    self.file = Fd(open(own_file, O_RDONLY | O_CLOEXEC));
    if (!offset || !self.file)
        return "this program cannot read itself";
    self.places.push_back({.probe = 0, .offset = *offset});
    Linker linker(skeleton->obj, tier, std::span(&hook, 1), [] {});
    const LoadLog log;
    if (const int error = calibrate_bpf::load(skeleton.get()))
        return refusal_of(-error, log.text()).text();
    Links links;
    linker.attach(hook, {self, getpid()}, links);
    gpusnoop_do_nothing();
    return skeleton->bss->taken ? std::string() : "the kernel took the probes, but they are not hit";
} catch (const Error& error) {
    return error.what();
}

} // namespace gpusnoop
