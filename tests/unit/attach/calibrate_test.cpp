// SPDX-License-Identifier: Apache-2.0
#include "attach/calibrate.hpp"

#include "tests/unit/attach/bpf_here.hpp"

#include <chrono>
#include <sys/wait.h>
#include <thread>

using namespace gpusnoop;

namespace {

bool first_wait_for_the_end = false;

} // namespace

// In place of the C library's: a child ends while it is asked whether it has.
extern "C" pid_t waitpid(pid_t pid, int* status, int options)
{
    siginfo_t end{};
    if (first_wait_for_the_end)
        ::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOWAIT);
    return static_cast<pid_t>(syscall(SYS_wait4, pid, status, options, nullptr));
}

TEST_CASE("what a probe costs is known, also where it is measured while the meter is asked", "[attach]")
{
    need_bpf();
    ProbeCostMeter meter(best_tier());
    first_wait_for_the_end = true;
    const bool known = meter.cost().has_value();
    first_wait_for_the_end = false;
    CHECK(known);
    CHECK(meter.cost().has_value());
}
