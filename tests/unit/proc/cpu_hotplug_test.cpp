// SPDX-License-Identifier: Apache-2.0
#include "proc/mapping_watch.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string_view>

using namespace gpusnoop;
using namespace std::string_view_literals;

TEST_CASE("a uevent names the CPU that came online", "[proc]")
{
    CHECK(CpuHotplug::parse("online@/devices/system/cpu/cpu1\0ACTION=online\0SUBSYSTEM=cpu\0"sv) == 1);
    CHECK(CpuHotplug::parse("online@/devices/system/cpu/cpu255"sv) == 255);
}

TEST_CASE("other uevents name no CPU", "[proc]")
{
    for (const std::string_view uevent :
         {""sv, "offline@/devices/system/cpu/cpu1"sv, "online@/devices/system/cpu/cpu"sv,
          "online@/devices/system/cpu/cpu1x"sv, "online@/devices/system/cpu/cpu-1"sv,
          "online@/devices/system/cpu/cpu99999999999"sv, "online@/devices/system/memory/memory1"sv,
          "\0online@/devices/system/cpu/cpu1"sv, "libudev\0online@/devices/system/cpu/cpu1"sv})
        CHECK_FALSE(CpuHotplug::parse(uevent));
}
