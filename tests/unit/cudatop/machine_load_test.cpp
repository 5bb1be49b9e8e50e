// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/machine_load.hpp"

#include <catch2/catch_test_macros.hpp>
#include <unistd.h>

using namespace gpusnoop;

TEST_CASE("counts runnable threads, without the reader itself, and online CPUs")
{
    const auto load = parse_machine_load("cpu  9 9\ncpu0 1 2\ncpu7 1 2\nintr 8 1\nprocs_running 12\nprocs_blocked 3\n");
    REQUIRE(load);
    CHECK(load->running == 11);
    CHECK(load->cpus == 2);
}

TEST_CASE("the load is unknown if /proc/stat is incomplete")
{
    CHECK(!parse_machine_load(""));
    CHECK(!parse_machine_load("cpu0 1 2\nprocs_running many\n"));
    CHECK(!parse_machine_load("cpu0 1 2\nprocs_running"));
    CHECK(!parse_machine_load("procs_running 3\n"));
}

TEST_CASE("reads the load of this machine")
{
    const auto load = machine_load();
    REQUIRE(load);
    CHECK(load->cpus == static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)));
}
