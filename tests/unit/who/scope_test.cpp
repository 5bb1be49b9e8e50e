// SPDX-License-Identifier: Apache-2.0
#include "who/scope.hpp"

#include "tests/unit/base/sleeping_child.hpp"

using namespace gpusnoop;

TEST_CASE("exited processes leave the scope, because pids are reused, but the last process stays")
{
    SleepingChild process;
    const pid_t child = process.pid();
    Options options;
    options.pids = {getpid(), child};
    Scope scope(options);
    process.end();
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
