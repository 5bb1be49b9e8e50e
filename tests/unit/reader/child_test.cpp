// SPDX-License-Identifier: Apache-2.0
#include "reader/child.hpp"

#include "tests/unit/base/sleeping_child.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <poll.h>
#include <sched.h>
#include <stdexcept>
#include <sys/ptrace.h>
#include <thread>

using namespace gpusnoop;

namespace {

void wait(Child& child)
{
    while (!child.ended())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

} // namespace

TEST_CASE("a child has the given descriptors and no others", "[child]")
{
    const Ends pipe = pipe_ends();
    const Fd other(open("/", O_PATH | O_CLOEXEC));
    Child child({pipe.writing.get(), pipe.reading.get()}, [] {
        const bool others = fcntl(Child::first_fd + 2, F_GETFD) >= 0;
        (void)!write(Child::first_fd, others ? "others" : "none", others ? 6 : 4);
    });
    wait(child);
    CHECK(child.succeeded());
    std::array<char, 8> text{};
    CHECK(read(pipe.reading.get(), text.data(), text.size()) == 4);
}

TEST_CASE("only a child whose work returns has succeeded", "[child]")
{
    Child throws({}, [] { throw std::runtime_error("no"); });
    wait(throws);
    CHECK(!throws.succeeded());

    Child stays({}, [] { pause(); });
    CHECK(!stays.ended());
    stays.kill();
    wait(stays);
    CHECK(!stays.succeeded());

    Child none({-1}, [] {});
    CHECK(none.ended());
    CHECK(!none.succeeded());
}

TEST_CASE("a killed child that exits late is reaped when the next one starts", "[child]")
{
    // A traced child cannot be reaped until its tracer has handled the child's exit, or has exited itself.
    auto child = std::make_unique<Child>(std::initializer_list<int>{}, [] { pause(); });
    const std::string folder = "/proc/" + std::to_string(child->pid());
    SleepingChild tracer([&] { return ptrace(PTRACE_SEIZE, child->pid(), 0, 0) == 0; });
    CHECK(tracer.ready());
    child.reset();
    CHECK(access(folder.c_str(), F_OK) == 0);
    tracer.end();
    const Child next({}, [] {});
    CHECK(access(folder.c_str(), F_OK) != 0);
}

TEST_CASE("a descriptor that is closed after the start of a child does not stay open in the child", "[child]")
{
    Ends pipe = pipe_ends();
    // Parent and child share one CPU, so the child runs only while the parent waits.
    cpu_set_t before, one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    REQUIRE(sched_getaffinity(0, sizeof(before), &before) == 0);
    REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
    const Child child({}, [] { pause(); });
    pipe.writing = {};
    pollfd end{pipe.reading.get(), POLLIN, 0};
    CHECK(poll(&end, 1, 0) == 1);
    sched_setaffinity(0, sizeof(before), &before);
}
