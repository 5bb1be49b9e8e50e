// SPDX-License-Identifier: Apache-2.0
#include "attach/calibrate.hpp"

#include "tests/unit/attach/bpf_here.hpp"

#include <chrono>
#include <sys/wait.h>
#include <thread>

using namespace gpusnoop;

namespace {

bool exits_during_waitpid = false;

} // namespace

// Replaces waitpid() of the C library. If exits_during_waitpid is set, the function first waits for the child's exit,
// so that even a WNOHANG call reports the exit.
extern "C" pid_t waitpid(pid_t pid, int* status, int options)
{
    siginfo_t end{};
    if (exits_during_waitpid)
        ::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOWAIT);
    return static_cast<pid_t>(syscall(SYS_wait4, pid, status, options, nullptr));
}

TEST_CASE("the cost of a probe is known even if the helper exits while cost() runs", "[attach]")
{
    need_bpf();
    ProbeCostMeter meter(best_tier());
    exits_during_waitpid = true;
    const bool known = meter.cost().has_value();
    exits_during_waitpid = false;
    CHECK(known);
    CHECK(meter.cost().has_value());
}
