// SPDX-License-Identifier: Apache-2.0
#include "proc/threads.hpp"

#include <catch2/catch_test_macros.hpp>
#include <unistd.h>

using namespace gpusnoop;

TEST_CASE("reads the state of a thread and its tracer")
{
    const ThreadState traced =
        parse_thread_state("Name:\tState:\\tR\nUmask:\t0022\nState:\tt (tracing stop)\nTgid:\t7\n"
                           "TracerPid:\t4711\nUid:\t0\n");
    CHECK(traced.state == 't');
    CHECK(traced.tracer == 4711);
    for (const char* status : {"", "\nState:\t", "\nTracerPid:\tx", "State:\tT\n"}) {
        INFO(status);
        CHECK(parse_thread_state(status).state == 0);
        CHECK(parse_thread_state(status).tracer == 0);
    }
    CHECK(thread_state(getpid(), gettid()).state == 'R');
    CHECK(thread_state(getpid(), 1 << 30).state == 0);
}
