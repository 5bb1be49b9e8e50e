// SPDX-License-Identifier: Apache-2.0
#include "who/scope.hpp"

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using namespace gpusnoop;

TEST_CASE("exited processes leave the scope, because pids are reused, but the last process stays")
{
    const pid_t child = fork();
    if (!child)
        for (;;)
            pause();
    REQUIRE(child > 0);
    Options options;
    options.pids = {getpid(), child};
    Scope scope(options);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    CHECK(scope.includes(child));
    CHECK(scope.on_exit(child));
    CHECK(!scope.includes(child));
    CHECK(scope.pids() == std::vector<pid_t>{getpid()});
    CHECK(scope.pidfds().size() == 1);
    CHECK(!scope.on_exit(getpid()));
    CHECK(scope.pidfds().empty());
    CHECK(!scope.is_unfiltered());
    CHECK(scope.includes(getpid()));
}
