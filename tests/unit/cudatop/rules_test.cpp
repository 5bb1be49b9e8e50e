// SPDX-License-Identifier: Apache-2.0
// Each rule fires on values at its threshold, and not on values just below it.
#include "tools/cudatop/rules.hpp"

#include "tools/cudatop/diagnosis.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <map>

using namespace gpusnoop;

namespace {

using Change = std::function<void(Signs&)>;

struct Case {
    std::string_view rule;
    Change fires;
    Severity severity;
    std::string_view words;
    Change below_threshold; // applied on top of `fires`
};

Signs busy()
{
    Signs signs;
    signs.seconds = 5;
    signs.launches = 5000;
    return signs;
}

void fail(Signs& signs, Calls calls, uint64_t failed, uint64_t all)
{
    signs.failing[static_cast<size_t>(calls)] = {all, failed, "CUDA_ERROR_ILLEGAL_ADDRESS", 1};
}

const Case cases[] = {
    {"xid", [](Signs& s) { s.xid = 31; }, Severity::alarm, "GPU error, Xid 31: ", [](Signs& s) { s.xid.reset(); }},
    {"hangs",
     [](Signs& s) {
         s.wait = {2.4, "the GPU"};
         s.idle_since = true;
     },
     Severity::warning, "waiting for the GPU for 2.4 s; no launches since", [](Signs& s) { s.idle_since = false; }},
    {"hangs",
     [](Signs& s) {
         s.wait = {130, "a stream"};
         s.idle_since = true;
     },
     Severity::alarm, "waiting for a stream for 2 min; no launches since", [](Signs& s) { s.wait->seconds = 1.9; }},
    {"hangs",
     [](Signs& s) {
         s.wait = {2, "the GPU", true};
         s.idle_since = true;
     },
     Severity::warning, "waiting for the GPU for over 2.0 s (began before tracing); no launches since",
     [](Signs& s) { s.wait->seconds = 1.9; }},
    {"hangs",
     [](Signs& s) {
         s.wait = {2, "a stream"};
         s.idle_since = s.has_nccl = true;
     },
     Severity::warning,
     "waiting for a stream for 2.0 s; no launches since; it uses NCCL: ncclwait --ras shows which rank is the "
     "straggler",
     [](Signs& s) { s.wait->seconds = 1.9; }},
    {"hangs",
     [](Signs& s) {
         s.wait = {33, "a stream"};
         s.suspended_seconds = 30;
         s.idle_since = true;
     },
     Severity::warning,
     "waiting for a stream for 3.0 s; no launches since; also stopped or frozen for 30 s (not included)",
     [](Signs& s) { s.suspended_seconds = 32; }},
    {"stopped",
     [](Signs& s) {
         s.wait = {33, "the GPU"};
         s.suspension = "frozen by cgroup /batch";
         s.suspended_seconds = 30;
         s.idle_since = true;
     },
     Severity::warning, "frozen by cgroup /batch while waiting for the GPU; the wait began 33 s ago",
     [](Signs& s) { s.wait->seconds = 1.9; }},
    {"stuck",
     [](Signs& s) {
         s.stuck = {2.4, "cuLaunchKernel"};
     },
     Severity::warning, "stuck in cuLaunchKernel for over 2.4 s", [](Signs& s) { s.stuck->seconds = 1.9; }},
    {"stuck",
     [](Signs& s) {
         s.stuck = {14, "cuMemAlloc_v2"};
     },
     Severity::alarm, "stuck in cuMemAlloc_v2 for over 14 s", [](Signs& s) { s.stuck.reset(); }},
    {"driver",
     [](Signs& s) {
         s.driver_call = {12, "RM_ALLOC"};
     },
     Severity::alarm, "stuck in a driver call for 12 s: RM_ALLOC", [](Signs& s) { s.driver_call->seconds = 1.9; }},
    {"launch", [](Signs& s) { fail(s, Calls::launches, 1, 3); }, Severity::warning,
     "1 of 3 launches fail: CUDA_ERROR_ILLEGAL_ADDRESS", [](Signs& s) { fail(s, Calls::launches, 0, 3); }},
    {"wait", [](Signs& s) { fail(s, Calls::waits, 12, 12); }, Severity::alarm,
     "all 12 waits fail: CUDA_ERROR_ILLEGAL_ADDRESS", [](Signs& s) { fail(s, Calls::waits, 0, 12); }},
    {"graph", [](Signs& s) { fail(s, Calls::graphs, 1, 3); }, Severity::warning,
     "1 of 3 graph captures and instantiations fail: CUDA_ERROR_ILLEGAL_ADDRESS",
     [](Signs& s) { fail(s, Calls::graphs, 0, 3); }},
    {"copy", [](Signs& s) { fail(s, Calls::copies, 2, 4); }, Severity::alarm,
     "2 of 4 copies fail: CUDA_ERROR_ILLEGAL_ADDRESS", [](Signs& s) { fail(s, Calls::copies, 0, 4); }},
    {"refused",
     [](Signs& s) {
         s.refused = s.allocations = 10;
         s.refused_bytes = uint64_t{16} << 30;
     },
     Severity::alarm, "all 10 allocations fail: OUT_OF_MEMORY (last request: 16 GiB)", [](Signs& s) { s.refused = 0; }},
    {"memory", [](Signs& s) { fail(s, Calls::memory, 1, 4600); }, Severity::warning,
     "1 of 4600 allocations and frees fail: CUDA_ERROR_ILLEGAL_ADDRESS",
     [](Signs& s) { fail(s, Calls::memory, 0, 4600); }},
    {"ioctl", [](Signs& s) { fail(s, Calls::driver, 1, 3); }, Severity::note,
     "1 of 3 driver calls fail: CUDA_ERROR_ILLEGAL_ADDRESS", [](Signs& s) { fail(s, Calls::driver, 0, 3); }},
    {"grows",
     [](Signs& s) {
         s.grown_bytes = 400 << 20;
         s.growing_seconds = 5;
     },
     Severity::note, "allocates 80 MiB/s of device memory and frees nothing", [](Signs& s) { s.frees = 1; }},
    {"grows",
     [](Signs& s) {
         s.grown_bytes = 400 << 20;
         s.growing_seconds = 11;
     },
     Severity::warning, "allocates 80 MiB/s of device memory and frees nothing",
     [](Signs& s) { s.grown_bytes = (5 << 20) - 1; }},
    {"grows",
     [](Signs& s) {
         s.grown_bytes = 400 << 20;
         s.growing_seconds = 2;
         s.free_bytes = uint64_t{8} << 30;
         s.free_gpu = 3;
     },
     Severity::alarm, "GPU 3 full in 102 s: allocates 80 MiB/s and frees nothing",
     [](Signs& s) { s.growing_seconds = 1; }},
    {"copies", [](Signs& s) { s.copies = s.small_copies = s.synchronous = 23000; }, Severity::warning,
     "4600 copies/s, all under 64 KiB, all synchronous", [](Signs& s) { s.small_copies = 20000; }},
    {"copies", [](Signs& s) { s.copies = s.small_copies = 23000; }, Severity::note,
     "4600 copies/s, all under 64 KiB, none synchronous", [](Signs& s) { s.copies = 2400; }},
    {"copies",
     [](Signs& s) {
         s.copies = s.small_copies = s.synchronous = 23000;
         s.copied_from = "train::step (train)";
     },
     Severity::warning, "4600 copies/s, all under 64 KiB, all synchronous, from train::step (train)",
     [](Signs& s) { s.seconds = 0.5; }},
    {"polls",
     [](Signs& s) {
         s.polls = 280000;
         s.cpu_percent = 74;
     },
     Severity::warning, "polls for completion 56k times/s, burning 74% of a CPU", [](Signs& s) { s.polls = 24000; }},
    {"polls", [](Signs& s) { s.polls = 280000; }, Severity::note, "polls for completion 56k times/s",
     [](Signs& s) { s.seconds = 0.5; }},
    {"captures",
     [](Signs& s) {
         s.captured = 6000;
         s.captures = s.instantiations = 50;
         s.capturing_seconds = 5;
     },
     Severity::warning,
     "rebuilds graphs (re-capture storm): 10.0 captures/s, 10.0 instantiations/s; 1200 launches/s recorded, 1000/s "
     "executed",
     [](Signs& s) { s.capturing_seconds = 1; }},
    {"captures",
     [](Signs& s) {
         s.captures = 10;
         s.capturing_seconds = 5;
     },
     Severity::warning, "captures graphs 2.0 times/s; 0 launches/s recorded, 1000/s executed",
     [](Signs& s) { s.captures = 9; }},
    {"captures",
     [](Signs& s) {
         s.instantiations = 10;
         s.capturing_seconds = 5;
     },
     Severity::warning, "instantiates graphs 2.0 times/s; 0 launches/s recorded, 1000/s executed",
     [](Signs& s) { s.instantiations = 9; }},
    {"launches", [](Signs& s) { s.launching_percent = 93; }, Severity::warning,
     "launch-bound: one thread spends 93% of its time in launch calls; 1000 launches/s",
     [](Signs& s) { s.launching_percent = 59; }},
    {"blocks",
     [](Signs& s) {
         s.grids = 5000;
         s.small_grids = 4650;
         s.small_seconds = 5;
     },
     Severity::note, "tiny grids: 93% of 1000 launches/s have under 32 blocks, too few to fill a GPU",
     [](Signs& s) { s.small_grids = 4490; }},
    {"blocks",
     [](Signs& s) {
         s.grids = s.small_grids = 500;
         s.small_seconds = 3;
     },
     Severity::note, "tiny grids: all 100 launches/s have under 32 blocks, too few to fill a GPU",
     [](Signs& s) { s.grids = s.small_grids = 499; }},
    {"blocks",
     [](Signs& s) {
         s.grids = s.small_grids = 5000;
         s.small_seconds = 3;
     },
     Severity::note, "tiny grids: all 1000 launches/s have under 32 blocks, too few to fill a GPU",
     [](Signs& s) { s.small_seconds = 2; }},
    {"spins",
     [](Signs& s) {
         s.waiting_percent = 97;
         s.cpu_percent = 99;
     },
     Severity::note, "busy-waiting for the GPU 97% of the time, burning 99% of a CPU",
     [](Signs& s) { s.cpu_percent = 4; }},
    {"starves",
     [](Signs& s) {
         s.starving_percent = 71;
         s.cpus = 4;
         s.load = {32.4, 8};
     },
     Severity::warning,
     "CUDA thread is ready but gets no CPU 71% of the time: 32 runnable threads on 8 CPUs; the process may use 4 CPUs",
     [](Signs& s) { s.starving_percent = 29; }},
    {"idle",
     [](Signs& s) {
         s.off_cpu_percent = 85;
         s.gpu_percent = 7;
     },
     Severity::note,
     "GPU only 7% busy: the launching thread is asleep or blocked 85% of the time, not waiting for the GPU",
     [](Signs& s) { s.gpu_percent = 20; }},
    {"idle",
     [](Signs& s) {
         s.off_cpu_percent = 60;
         s.gpu_percent = 0;
     },
     Severity::note, "GPU only 0% busy: ", [](Signs& s) { s.gpu_percent.reset(); }},
    {"idle",
     [](Signs& s) {
         s.off_cpu_percent = 99;
         s.gpu_percent = 0;
         s.launches = 50;
     },
     Severity::note, "GPU only 0% busy: ", [](Signs& s) { s.off_cpu_percent = 59; }},
    {"restarts",
     [](Signs& s) {
         s.restarts = {12, 4.6, "all 3 copies fail: CUDA_ERROR_OUT_OF_MEMORY"};
     },
     Severity::alarm, "restart loop: 12 starts in 4.6 s; last error: all 3 copies fail: CUDA_ERROR_OUT_OF_MEMORY",
     [](Signs& s) { s.restarts.reset(); }},
    {"restarts",
     [](Signs& s) {
         s.restarts = {3, 40, ""};
     },
     Severity::note, "restart loop: 3 starts in 40 s", [](Signs& s) { s.restarts.reset(); }},
    {"shares",
     [](Signs& s) {
         s.neighbour = {"0", "hog (1234, train/hog-0)", 96};
     },
     Severity::note, "shares GPU 0 with hog (1234, train/hog-0), which makes 96% of that GPU's launches",
     [](Signs& s) { s.neighbour->percent = 79; }},
};

// Findings of the rules that fire, by rule name.
std::map<std::string_view, Finding> found(const Signs& signs)
{
    std::map<std::string_view, Finding> all;
    for (const Rule& rule : rules())
        if (auto finding = rule.check(signs))
            all.emplace(rule.name, *finding);
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
        INFO(of.rule << ": " << of.words);
        Signs signs = busy();
        of.fires(signs);
        const auto fired = found(signs);
        REQUIRE(fired.size() == 1);
        CHECK(fired.begin()->first == of.rule);
        CHECK(fired.begin()->second.words.starts_with(of.words));
        CHECK(fired.begin()->second.severity == of.severity);
        of.below_threshold(signs);
        CHECK(found(signs).empty());
    }
}

TEST_CASE("every rule has a case here, a name that fits its column, and a command", "[rules]")
{
    for (const Rule& rule : rules()) {
        INFO(rule.name);
        CHECK(std::ranges::any_of(cases, [&](const Case& of) { return of.rule == rule.name; }));
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
