// SPDX-License-Identifier: Apache-2.0
// Each rule fires on values at its threshold, and not on values just below it.
#include "tools/cudatop/rules.hpp"

#include "tools/cudatop/diagnosis.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <functional>

using namespace gpusnoop;

// Signs set only the fields that matter.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace {

using Wait = UnfinishedCall;

struct Case {
    std::string_view finding;              // "SEVERITY RULE: beginning of the words"
    Signs signs;                           // the rest as in busy()
    std::function<void(Signs&)> make_good; // moves a value below its threshold
};

Signs busy(Signs signs = {})
{
    signs.seconds = signs.seconds ? signs.seconds : 5;
    signs.launches = signs.launches ? signs.launches : 5000;
    return signs;
}

Signs failing(Calls calls, uint64_t failed, uint64_t all)
{
    Signs signs;
    signs.failing[static_cast<size_t>(calls)] = {all, failed, "CUDA_ERROR_ILLEGAL_ADDRESS", 1};
    return signs;
}

template<Calls calls>
void none_fails(Signs& signs)
{
    signs.failing[static_cast<size_t>(calls)].failed = 0;
}

const Case cases[] = {
    {"alarm xid: GPU error, Xid 31: ", {.xid = 31}, [](Signs& s) { s.xid.reset(); }},
    {"warning hangs: waiting for the GPU for 2.4 s; no launches since",
     {.wait = Wait{2.4, "the GPU"}, .idle_since = true},
     [](Signs& s) { s.idle_since = false; }},
    {"alarm hangs: waiting for a stream for 2 min; no launches since",
     {.wait = Wait{130, "a stream"}, .idle_since = true},
     [](Signs& s) { s.wait->seconds = 1.9; }},
    {"warning hangs: waiting for the GPU for over 2.0 s (began before tracing); no launches since",
     {.wait = Wait{2, "the GPU", true}, .idle_since = true},
     [](Signs& s) { s.wait->seconds = 1.9; }},
    {"warning hangs: waiting for a stream for 2.0 s; no launches since; it uses NCCL: ncclwait --ras shows which rank "
     "is the straggler",
     {.wait = Wait{2, "a stream"}, .idle_since = true, .has_nccl = true},
     [](Signs& s) { s.wait->seconds = 1.9; }},
    {"warning hangs: waiting for a stream for 3.0 s; no launches since; also stopped or frozen for 30 s (not included)",
     {.wait = Wait{33, "a stream"}, .suspended_seconds = 30, .idle_since = true},
     [](Signs& s) { s.suspended_seconds = 32; }},
    {"warning stopped: frozen by cgroup /batch while waiting for the GPU; the wait began 33 s ago",
     {.wait = Wait{33, "the GPU"},
      .suspension = "frozen by cgroup /batch",
      .suspended_seconds = 30,
      .idle_since = true},
     [](Signs& s) { s.wait->seconds = 1.9; }},
    {"warning stuck: stuck in cuLaunchKernel for over 2.4 s",
     {.stuck = Wait{2.4, "cuLaunchKernel"}},
     [](Signs& s) { s.stuck->seconds = 1.9; }},
    {"alarm stuck: stuck in cuMemAlloc_v2 for over 14 s",
     {.stuck = Wait{14, "cuMemAlloc_v2"}},
     [](Signs& s) { s.stuck.reset(); }},
    {"alarm driver: stuck in a driver call for 12 s: RM_ALLOC",
     {.driver_call = Wait{12, "RM_ALLOC"}},
     [](Signs& s) { s.driver_call->seconds = 1.9; }},
    {"warning launch: 1 of 3 launches fail: CUDA_ERROR_ILLEGAL_ADDRESS", failing(Calls::launches, 1, 3),
     none_fails<Calls::launches>},
    {"alarm wait: all 12 waits fail: CUDA_ERROR_ILLEGAL_ADDRESS", failing(Calls::waits, 12, 12),
     none_fails<Calls::waits>},
    {"warning graph: 1 of 3 graph captures and instantiations fail: CUDA_ERROR_ILLEGAL_ADDRESS",
     failing(Calls::graphs, 1, 3), none_fails<Calls::graphs>},
    {"alarm copy: 2 of 4 copies fail: CUDA_ERROR_ILLEGAL_ADDRESS", failing(Calls::copies, 2, 4),
     none_fails<Calls::copies>},
    {"alarm refused: all 10 allocations fail: OUT_OF_MEMORY (last request: 16 GiB)",
     {.refused = 10, .allocations = 10, .refused_bytes = uint64_t{16} << 30},
     [](Signs& s) { s.refused = 0; }},
    {"warning memory: 1 of 4600 allocations and frees fail: CUDA_ERROR_ILLEGAL_ADDRESS",
     failing(Calls::memory, 1, 4600), none_fails<Calls::memory>},
    {"note ioctl: 1 of 3 driver calls fail: CUDA_ERROR_ILLEGAL_ADDRESS", failing(Calls::driver, 1, 3),
     none_fails<Calls::driver>},
    {"note grows: allocates 80 MiB/s of device memory and frees nothing",
     {.grown_bytes = 400 << 20, .growing_seconds = 5},
     [](Signs& s) { s.frees = 1; }},
    {"warning grows: allocates 80 MiB/s of device memory and frees nothing",
     {.grown_bytes = 400 << 20, .growing_seconds = 11},
     [](Signs& s) { s.grown_bytes = (5 << 20) - 1; }},
    {"alarm grows: GPU 3 full in 102 s: allocates 80 MiB/s and frees nothing",
     {.grown_bytes = 400 << 20, .growing_seconds = 2, .free_bytes = uint64_t{8} << 30, .free_gpu = 3},
     [](Signs& s) { s.growing_seconds = 1; }},
    {"warning copies: 4600 copies/s, all under 64 KiB, all synchronous",
     {.copies = 23000, .small_copies = 23000, .synchronous = 23000},
     [](Signs& s) { s.small_copies = 20000; }},
    {"note copies: 4600 copies/s, all under 64 KiB, none synchronous",
     {.copies = 23000, .small_copies = 23000},
     [](Signs& s) { s.copies = 2400; }},
    {"warning copies: 4600 copies/s, all under 64 KiB, all synchronous, from train::step (train)",
     {.copies = 23000, .small_copies = 23000, .synchronous = 23000, .copied_from = "train::step (train)"},
     [](Signs& s) { s.seconds = 0.5; }},
    {"warning polls: polls for completion 56k times/s, burning 74% of a CPU",
     {.cpu_percent = 74, .polls = 280000},
     [](Signs& s) { s.polls = 24000; }},
    {"note polls: polls for completion 56k times/s", {.polls = 280000}, [](Signs& s) { s.seconds = 0.5; }},
    {"warning captures: rebuilds graphs (re-capture storm): 10.0 captures/s, 10.0 instantiations/s; 1200 launches/s "
     "recorded, 1000/s executed",
     {.captured = 6000, .captures = 50, .instantiations = 50, .capturing_seconds = 5},
     [](Signs& s) { s.capturing_seconds = 1; }},
    {"warning captures: captures graphs 2.0 times/s; 0 launches/s recorded, 1000/s executed",
     {.captures = 10, .capturing_seconds = 5},
     [](Signs& s) { s.captures = 9; }},
    {"warning captures: instantiates graphs 2.0 times/s; 0 launches/s recorded, 1000/s executed",
     {.instantiations = 10, .capturing_seconds = 5},
     [](Signs& s) { s.instantiations = 9; }},
    {"warning launches: launch-bound: one thread spends 93% of its time in launch calls; 1000 launches/s",
     {.launching_percent = 93},
     [](Signs& s) { s.launching_percent = 59; }},
    {"note blocks: tiny grids: 93% of 1000 launches/s have under 32 blocks, too few to fill a GPU",
     {.grids = 5000, .small_grids = 4650, .small_seconds = 5},
     [](Signs& s) { s.small_grids = 4490; }},
    {"note blocks: tiny grids: all 100 launches/s have under 32 blocks, too few to fill a GPU",
     {.grids = 500, .small_grids = 500, .small_seconds = 3},
     [](Signs& s) { s.grids = s.small_grids = 499; }},
    {"note blocks: tiny grids: all 1000 launches/s have under 32 blocks, too few to fill a GPU",
     {.grids = 5000, .small_grids = 5000, .small_seconds = 3},
     [](Signs& s) { s.small_seconds = 2; }},
    {"note spins: busy-waiting for the GPU 97% of the time, burning 99% of a CPU",
     {.cpu_percent = 99, .waiting_percent = 97},
     [](Signs& s) { s.cpu_percent = 4; }},
    {"warning starves: CUDA thread is ready but gets no CPU 71% of the time: 32 runnable threads on 8 CPUs; the "
     "process may use 4 CPUs",
     {.starving_percent = 71, .cpus = 4, .load = MachineLoad{32.4, 8}},
     [](Signs& s) { s.starving_percent = 29; }},
    {"note idle: GPU only 7% busy: the launching thread is asleep or blocked 85% of the time, not waiting for the GPU",
     {.off_cpu_percent = 85, .gpu_percent = 7},
     [](Signs& s) { s.gpu_percent = 20; }},
    {"note idle: GPU only 0% busy: ",
     {.off_cpu_percent = 60, .gpu_percent = 0},
     [](Signs& s) { s.gpu_percent.reset(); }},
    {"note idle: GPU only 0% busy: ",
     {.off_cpu_percent = 99, .gpu_percent = 0, .launches = 50},
     [](Signs& s) { s.off_cpu_percent = 59; }},
    {"alarm restarts: restart loop: 12 starts in 4.6 s; last error: all 3 copies fail: CUDA_ERROR_OUT_OF_MEMORY",
     {.restarts = RestartLoop{12, 4.6, "all 3 copies fail: CUDA_ERROR_OUT_OF_MEMORY"}},
     [](Signs& s) { s.restarts.reset(); }},
    {"note restarts: restart loop: 3 starts in 40 s",
     {.restarts = RestartLoop{3, 40, ""}},
     [](Signs& s) { s.restarts.reset(); }},
    {"note shares: shares GPU 0 with hog (1234, train/hog-0), which makes 96% of that GPU's launches",
     {.neighbour = Neighbour{"0", "hog (1234, train/hog-0)", 96}},
     [](Signs& s) { s.neighbour->percent = 79; }},
};

// Findings of the rules that fire.
std::vector<std::string> found(const Signs& signs)
{
    constexpr std::array severities{"none", "note", "warning", "alarm"};
    std::vector<std::string> all;
    for (const Rule& rule : rules())
        if (const auto finding = rule.check(signs))
            all.push_back(fmt::format("{} {}: {}", severities.at(static_cast<size_t>(finding->severity)), rule.name,
                                      finding->words));
    return all;
}

} // namespace

TEST_CASE("no rule fires on a healthy process", "[rules]")
{
    CHECK(found({}).empty());
    CHECK(found(busy()).empty());
    Signs signs = busy();
    signs.copies = signs.synchronous = 23000; // the copies are large
    signs.polls = 4000 * 5;
    signs.wait = {3600, "an event"}; // other threads launch meanwhile
    signs.waiting_percent = 100;     // the waiting threads are asleep, not spinning
    signs.cpu_percent = 30;
    signs.grown_bytes = 1 << 30; // allocated at once, not continuously
    signs.off_cpu_percent = 95;  // the GPU is busy
    signs.gpu_percent = 97;
    signs.captured = 200; // captures only at the start
    signs.captures = signs.instantiations = 20;
    signs.capturing_seconds = 1;
    CHECK(found(signs).empty());
}

TEST_CASE("a rule fires at its threshold and not below it", "[rules]")
{
    for (const Case& of : cases) {
        INFO(of.finding);
        Signs signs = busy(of.signs);
        const auto fired = found(signs);
        REQUIRE(fired.size() == 1);
        CHECK(fired.front().starts_with(of.finding));
        of.make_good(signs);
        CHECK(found(signs).empty());
    }
}

TEST_CASE("every rule has a case here, a name that fits its column, and a command", "[rules]")
{
    for (const Rule& rule : rules()) {
        INFO(rule.name);
        CHECK(std::ranges::any_of(cases, [&](const Case& of) {
            return of.finding.find(fmt::format(" {}: ", rule.name)) != of.finding.npos;
        }));
        CHECK(rule.name.size() <= 8);
        CHECK(!rule.about.empty());
        CHECK(!rule.next.empty());
    }
}

TEST_CASE("spun time is the CPU time in excess of the time outside waits", "[diagnosis]")
{
    CHECK(spun_ns(900, 1000, 1000) == 900);
    CHECK(spun_ns(900, 50, 1000) == 0);
    CHECK(spun_ns(900, 600, 1000) == 500);
    CHECK(spun_ns(0, 1000, 1000) == 0);
    CHECK(spun_ns(1000, 1005, 1000) == 1000);
    CHECK(spun_ns(1005, 10, 1000) == 10);
}
