// SPDX-License-Identifier: Apache-2.0
#include "proc/mapping_watch.hpp"

#include "threads_of_child.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string_view>
#include <vector>

using namespace gpusnoop;
using namespace std::string_view_literals;

using Exit = ProcessExits::Exit;

TEST_CASE("a process exits with its last thread", "[process-exits]")
{
    const ThreadsOfChild child(3);
    ProcessExits exits;
    CHECK(exits.thread_exited(child.pid(), child.end_one()) == Exit::thread);
    child.end_main();
    CHECK(exits.thread_exited(child.pid(), child.pid()) == Exit::main_thread);
    CHECK(exits.drain_unreported().empty());
    CHECK(exits.thread_exited(child.pid(), child.end_one()) == Exit::thread);
    CHECK(exits.thread_exited(child.pid(), child.end_one()) == Exit::process);
    CHECK(exits.thread_exited(child.pid(), child.pid()) == Exit::process); // the process is no longer tracked
}

TEST_CASE("a process whose main thread exits last", "[process-exits]")
{
    const ThreadsOfChild child(2);
    ProcessExits exits;
    const std::vector<pid_t> others{child.end_one(), child.end_one()};
    for (const pid_t tid : others)
        CHECK(exits.thread_exited(child.pid(), tid) == Exit::thread);
    child.end_main();
    CHECK(exits.thread_exited(child.pid(), child.pid()) == Exit::process);
}

TEST_CASE("exit records of the main thread and the last thread arrive out of order", "[process-exits]")
{
    const ThreadsOfChild child(1);
    ProcessExits exits;
    child.end_main();
    CHECK(exits.thread_exited(child.pid(), child.end_one()) == Exit::thread);
    CHECK(exits.thread_exited(child.pid(), child.pid()) == Exit::process);
}

TEST_CASE("the main thread was replaced by exec in another thread", "[process-exits]")
{
    const ThreadsOfChild child(0);
    ProcessExits exits;
    CHECK(exits.thread_exited(child.pid(), child.pid()) == Exit::replaced);
    CHECK_FALSE(exits.executed(child.pid()));
}

TEST_CASE("an exec record arrives after the exit record of the main thread", "[process-exits]")
{
    const ThreadsOfChild child(1);
    ProcessExits exits;
    child.end_main();
    CHECK(exits.thread_exited(child.pid(), child.pid()) == Exit::main_thread);
    CHECK(exits.executed(child.pid()));
    CHECK_FALSE(exits.executed(child.pid()));
}

TEST_CASE("the exit record of the last thread is lost", "[process-exits]")
{
    const ThreadsOfChild child(1);
    ProcessExits exits;
    child.end_main();
    CHECK(exits.thread_exited(child.pid(), child.pid()) == Exit::main_thread);
    child.end_one();
    CHECK(exits.drain_unreported() == std::set{child.pid()});
    CHECK(exits.drain_unreported().empty());
}

TEST_CASE("a uevent names the CPU that came online, if any", "[proc]")
{
    CHECK(CpuHotplug::parse("online@/devices/system/cpu/cpu1\0ACTION=online\0SUBSYSTEM=cpu\0"sv) == 1);
    CHECK(CpuHotplug::parse("online@/devices/system/cpu/cpu255"sv) == 255);
    for (const std::string_view uevent :
         {""sv, "offline@/devices/system/cpu/cpu1"sv, "online@/devices/system/cpu/cpu"sv,
          "online@/devices/system/cpu/cpu1x"sv, "online@/devices/system/cpu/cpu-1"sv,
          "online@/devices/system/cpu/cpu99999999999"sv, "online@/devices/system/memory/memory1"sv,
          "\0online@/devices/system/cpu/cpu1"sv, "libudev\0online@/devices/system/cpu/cpu1"sv})
        CHECK_FALSE(CpuHotplug::parse(uevent));
}
