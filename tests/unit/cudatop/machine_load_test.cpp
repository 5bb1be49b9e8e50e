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
    for (const char* incomplete :
         {"", "cpu0 1 2\nprocs_running many\n", "cpu0 1 2\nprocs_running", "procs_running 3\n"})
        CHECK(!parse_machine_load(incomplete));
    const auto here = machine_load();
    REQUIRE(here);
    CHECK(here->cpus == static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)));
}
