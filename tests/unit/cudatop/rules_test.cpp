// SPDX-License-Identifier: Apache-2.0
// Each rule with signs that fire it, and with others that nearly do.
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
    Change nearly; // on top of what fires it
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
    {"xid", [](Signs& s) { s.xid = 31; }, Severity::alarm,
     "had an error of its GPU, Xid 31: ", [](Signs& s) { s.xid.reset(); }},
    {"hangs",
     [](Signs& s) {
         s.wait = {2.4, "the device"};
         s.idle_since = true;
     },
     Severity::warning, "has waited 2.4 s for the device, launched nothing since",
     [](Signs& s) { s.idle_since = false; }},
    {"hangs",
     [](Signs& s) {
         s.wait = {130, "a stream"};
         s.idle_since = true;
     },
     Severity::alarm, "has waited 2 min for a stream, launched nothing since", [](Signs& s) { s.wait->seconds = 1.9; }},
    {"hangs",
     [](Signs& s) {
         s.wait = {2, "the device", true};
         s.idle_since = true;
     },
     Severity::warning, "waits for the device since before tracing began, more than 2.0 s, launched nothing meanwhile",
     [](Signs& s) { s.wait->seconds = 1.9; }},
    {"hangs",
     [](Signs& s) {
         s.wait = {2, "a stream"};
         s.idle_since = s.has_nccl = true;
     },
     Severity::warning,
     "has waited 2.0 s for a stream, launched nothing since; NCCL runs in it: ncclwait --ras tells which rank is "
     "behind",
     [](Signs& s) { s.wait->seconds = 1.9; }},
    {"hangs",
     [](Signs& s) {
         s.wait = {33, "a stream"};
         s.suspended_seconds = 30;
         s.idle_since = true;
     },
     Severity::warning, "has waited 3.0 s for a stream, launched nothing since; 30 s more it was stopped or frozen",
     [](Signs& s) { s.suspended_seconds = 32; }},
    {"stopped",
     [](Signs& s) {
         s.wait = {33, "the device"};
         s.suspension = "frozen by cgroup /batch";
         s.suspended_seconds = 30;
         s.idle_since = true;
     },
     Severity::warning, "is frozen by cgroup /batch, in a wait for the device that began 33 s ago",
     [](Signs& s) { s.wait->seconds = 1.9; }},
    {"stuck",
     [](Signs& s) {
         s.stuck = {2.4, "cuLaunchKernel"};
     },
     Severity::warning, "in cuLaunchKernel for over 2.4 s", [](Signs& s) { s.stuck->seconds = 1.9; }},
    {"stuck",
     [](Signs& s) {
         s.stuck = {14, "cuMemAlloc_v2"};
     },
     Severity::alarm, "in cuMemAlloc_v2 for over 14 s", [](Signs& s) { s.stuck.reset(); }},
    {"driver",
     [](Signs& s) {
         s.driver_call = {12, "RM_ALLOC"};
     },
     Severity::alarm, "has been in a call into the driver for 12 s: RM_ALLOC",
     [](Signs& s) { s.driver_call->seconds = 1.9; }},
    {"launch", [](Signs& s) { fail(s, Calls::launches, 1, 3); }, Severity::warning,
     "1 of 3 launches fail: CUDA_ERROR_ILLEGAL_ADDRESS", [](Signs& s) { fail(s, Calls::launches, 0, 3); }},
    {"wait", [](Signs& s) { fail(s, Calls::waits, 12, 12); }, Severity::alarm,
     "all 12 waits fail: CUDA_ERROR_ILLEGAL_ADDRESS", [](Signs& s) { fail(s, Calls::waits, 0, 12); }},
    {"graph", [](Signs& s) { fail(s, Calls::graphs, 1, 3); }, Severity::warning,
     "1 of 3 captures and instantiations of graphs fail: CUDA_ERROR_ILLEGAL_ADDRESS",
     [](Signs& s) { fail(s, Calls::graphs, 0, 3); }},
    {"copy", [](Signs& s) { fail(s, Calls::copies, 2, 4); }, Severity::alarm,
     "2 of 4 copies fail: CUDA_ERROR_ILLEGAL_ADDRESS", [](Signs& s) { fail(s, Calls::copies, 0, 4); }},
    {"refused",
     [](Signs& s) {
         s.refused = s.allocations = 10;
         s.refused_bytes = uint64_t{16} << 30;
     },
     Severity::alarm, "10 of 10 allocations refused, the last of 16.0G: OUT_OF_MEMORY",
     [](Signs& s) { s.refused = 0; }},
    {"memory", [](Signs& s) { fail(s, Calls::memory, 1, 4600); }, Severity::warning,
     "1 of 4600 allocations and frees fail: CUDA_ERROR_ILLEGAL_ADDRESS",
     [](Signs& s) { fail(s, Calls::memory, 0, 4600); }},
    {"ioctl", [](Signs& s) { fail(s, Calls::driver, 1, 3); }, Severity::note,
     "1 of 3 calls into the driver fail: CUDA_ERROR_ILLEGAL_ADDRESS", [](Signs& s) { fail(s, Calls::driver, 0, 3); }},
    {"grows",
     [](Signs& s) {
         s.grown_bytes = 400 << 20;
         s.growing_seconds = 5;
     },
     Severity::note, "grows by 80.0M/s of device memory, and frees none", [](Signs& s) { s.frees = 1; }},
    {"grows",
     [](Signs& s) {
         s.grown_bytes = 400 << 20;
         s.growing_seconds = 11;
     },
     Severity::warning, "grows by 80.0M/s of device memory, and frees none",
     [](Signs& s) { s.grown_bytes = (5 << 20) - 1; }},
    {"grows",
     [](Signs& s) {
         s.grown_bytes = 400 << 20;
         s.growing_seconds = 2;
         s.free_bytes = uint64_t{8} << 30;
         s.free_gpu = 3;
     },
     Severity::alarm, "grows by 80.0M/s of device memory, and frees none: GPU 3 is full in 102 s",
     [](Signs& s) { s.growing_seconds = 1; }},
    {"copies", [](Signs& s) { s.copies = s.small_copies = s.synchronous = 23000; }, Severity::warning,
     "copies 4600 times/s, 100% of them smaller than 64K, 100% synchronous", [](Signs& s) { s.small_copies = 20000; }},
    {"copies", [](Signs& s) { s.copies = s.small_copies = 23000; }, Severity::note,
     "copies 4600 times/s, 100% of them smaller than 64K, 0% synchronous", [](Signs& s) { s.copies = 2400; }},
    {"copies",
     [](Signs& s) {
         s.copies = s.small_copies = s.synchronous = 23000;
         s.copied_from = "train::step (train)";
     },
     Severity::warning,
     "copies 4600 times/s, 100% of them smaller than 64K, 100% synchronous, from train::step (train)",
     [](Signs& s) { s.seconds = 0.5; }},
    {"polls",
     [](Signs& s) {
         s.polls = 280000;
         s.cpu_percent = 74;
     },
     Severity::warning, "asks 56000 times/s whether work is done, and uses 74% of a CPU",
     [](Signs& s) { s.polls = 24000; }},
    {"polls", [](Signs& s) { s.polls = 280000; }, Severity::note, "asks 56000 times/s whether work is done",
     [](Signs& s) { s.seconds = 0.5; }},
    {"captures",
     [](Signs& s) {
         s.captured = 6000;
         s.captures = s.instantiations = 50;
         s.capturing_seconds = 5;
     },
     Severity::warning,
     "captures graphs 10.0 times/s, instantiates 10.0/s (re-capture storm): 1200 launches/s are recorded, 1000/s are "
     "made",
     [](Signs& s) { s.capturing_seconds = 1; }},
    {"captures",
     [](Signs& s) {
         s.captures = 10;
         s.capturing_seconds = 5;
     },
     Severity::warning, "captures graphs 2.0 times/s: 0 launches/s are recorded, 1000/s are made",
     [](Signs& s) { s.captures = 9; }},
    {"captures",
     [](Signs& s) {
         s.instantiations = 10;
         s.capturing_seconds = 5;
     },
     Severity::warning, "instantiates graphs 2.0 times/s: 0 launches/s are recorded, 1000/s are made",
     [](Signs& s) { s.instantiations = 9; }},
    {"launches", [](Signs& s) { s.launching_percent = 93; }, Severity::warning,
     "is bound by launches: a thread spends 93% of its time in launch calls, 1000/s",
     [](Signs& s) { s.launching_percent = 59; }},
    {"blocks",
     [](Signs& s) {
         s.grids = 5000;
         s.small_grids = 4650;
         s.small_seconds = 5;
     },
     Severity::note, "93% of 1000 launches/s are of fewer than 32 blocks, too few to fill a GPU",
     [](Signs& s) { s.small_grids = 4490; }},
    {"blocks",
     [](Signs& s) {
         s.grids = s.small_grids = 500;
         s.small_seconds = 3;
     },
     Severity::note, "100% of 100 launches/s are of fewer than 32 blocks, too few to fill a GPU",
     [](Signs& s) { s.grids = s.small_grids = 499; }},
    {"blocks",
     [](Signs& s) {
         s.grids = s.small_grids = 5000;
         s.small_seconds = 3;
     },
     Severity::note, "100% of 1000 launches/s are of fewer than 32 blocks, too few to fill a GPU",
     [](Signs& s) { s.small_seconds = 2; }},
    {"spins",
     [](Signs& s) {
         s.waiting_percent = 97;
         s.cpu_percent = 99;
     },
     Severity::note, "waits 97% of the time, and spins meanwhile: 99% of a CPU", [](Signs& s) { s.cpu_percent = 4; }},
    {"starves",
     [](Signs& s) {
         s.starving_percent = 71;
         s.cpus = 4;
         s.load = {32.4, 8};
     },
     Severity::warning,
     "a thread that calls CUDA waits 71% of its time for a CPU: 32 threads run or could run on 8 CPUs; the process may "
     "use 4 of them",
     [](Signs& s) { s.starving_percent = 29; }},
    {"idle",
     [](Signs& s) {
         s.off_cpu_percent = 85;
         s.gpu_percent = 7;
     },
     Severity::note,
     "leaves its GPU idle, which is busy 7% of the time: the thread that launches sleeps or is blocked 85% of its "
     "time, "
     "and not in waits for the GPU",
     [](Signs& s) { s.gpu_percent = 20; }},
    {"idle",
     [](Signs& s) {
         s.off_cpu_percent = 60;
         s.gpu_percent = 0;
     },
     Severity::note, "leaves its GPU idle, which is busy 0% of the time", [](Signs& s) { s.gpu_percent.reset(); }},
    {"idle",
     [](Signs& s) {
         s.off_cpu_percent = 99;
         s.gpu_percent = 0;
         s.launches = 50;
     },
     Severity::note, "leaves its GPU idle", [](Signs& s) { s.off_cpu_percent = 59; }},
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
     Severity::note, "shares GPU 0 with hog (1234, train/hog-0), which makes 96% of the launches there",
     [](Signs& s) { s.neighbour->percent = 79; }},
};

// Names of the rules that speak, and what they say.
std::map<std::string_view, Finding> found(const Signs& signs)
{
    std::map<std::string_view, Finding> all;
    for (const Rule& rule : rules())
        if (auto finding = rule.check(signs))
            all.emplace(rule.name, *finding);
    return all;
}

} // namespace

TEST_CASE("nothing is wrong with a process that launches and frees", "[rules]")
{
    CHECK(found({}).empty());
    CHECK(found(busy()).empty());
    Signs signs = busy();
    signs.copies = signs.synchronous = 23000; // large ones
    signs.polls = 4000 * 5;
    signs.wait = {3600, "an event"}; // of one thread, while others launch
    signs.waiting_percent = 100;     // asleep
    signs.cpu_percent = 30;
    signs.grown_bytes = 1 << 30; // at once, and then no more
    signs.off_cpu_percent = 95;  // the GPU is busy
    signs.gpu_percent = 97;
    signs.captured = 200; // once, at the start
    signs.captures = signs.instantiations = 20;
    signs.capturing_seconds = 1;
    CHECK(found(signs).empty());
}

TEST_CASE("a rule speaks at its threshold, and not below it", "[rules]")
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
        of.nearly(signs);
        CHECK(found(signs).empty());
    }
}

TEST_CASE("every rule has a case, a name that fits its column, and a command", "[rules]")
{
    for (const Rule& rule : rules()) {
        INFO(rule.name);
        CHECK(std::ranges::any_of(cases, [&](const Case& of) { return of.rule == rule.name; }));
        CHECK(rule.name.size() <= 8);
        CHECK(!rule.about.empty());
        CHECK(!rule.next.empty());
    }
}

TEST_CASE("a wait that uses the CPU spins, as far as that cannot have been used elsewhere", "[diagnosis]")
{
    CHECK(spun_ns(900, 1000, 1000) == 900);
    CHECK(spun_ns(900, 50, 1000) == 0);
    CHECK(spun_ns(900, 600, 1000) == 500);
    CHECK(spun_ns(0, 1000, 1000) == 0);
    CHECK(spun_ns(1000, 1005, 1000) == 1000);
    CHECK(spun_ns(1005, 10, 1000) == 10);
}
