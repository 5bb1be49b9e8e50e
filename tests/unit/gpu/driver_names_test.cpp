// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver_names.hpp"

#include "driver_tables.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>

using namespace gpusnoop;

TEST_CASE("well-known numbers have their names")
{
    CHECK(command_name(SPACE_NVIDIA, 0x2a) == "NV_ESC_RM_CONTROL");
    CHECK(command_name(SPACE_NVIDIA, 0x2b) == "NV_ESC_RM_ALLOC");
    CHECK(command_name(SPACE_NVIDIA, 0xd2) == "NV_ESC_CHECK_VERSION_STR");
    CHECK(command_name(SPACE_UVM, 34) == "UVM_FREE");
    CHECK(command_name(SPACE_UVM, 0x30000001) == "UVM_INITIALIZE");
    CHECK(command_name(SPACE_UVM, 56) == "UVM_TOOLS_INIT_EVENT_TRACKER");
    CHECK(command_name(SPACE_MODESET, 0) == "NVKMS_IOCTL");
    CHECK(command_name(SPACE_KFD, 0x16) == "AMDKFD_IOC_ALLOC_MEMORY_OF_GPU");
    CHECK(command_name(SPACE_AMDGPU, 0x44) == "DRM_AMDGPU_CS");
    CHECK(control_name(0x20801303) == "NV2080_CTRL_CMD_FB_GET_INFO_V2");
    CHECK(class_name(0xc46f) == "TURING_CHANNEL_GPFIFO_A");
    CHECK(class_name(0) == "NV01_ROOT");
    CHECK(heap_function_name(2) == "NVOS32_FUNCTION_ALLOC_SIZE");
    CHECK(heap_function_name(14) == "NVOS32_FUNCTION_ALLOC_SIZE_RANGE");
    CHECK(nv_status_name(0) == "NV_OK");
    CHECK(nv_status_name(0x51) == "NV_ERR_NO_MEMORY");
    CHECK(nv_status_name(0x10006) == "NV_WARN_NOTHING_TO_DO");
    CHECK(std::size(statuses) == 151);
    CHECK(command_name(SPACE_NVIDIA, 0x5f) == "NV_ESC_RM_LOCKLESS_DIAGNOSTIC"); // its later name
}

TEST_CASE("unknown numbers have no name")
{
    for (uint32_t number : {0x1fu, 0xffu, 0x100u, 0xc020462au, 0xffffffffu}) {
        CAPTURE(number);
        for (int space = SPACE_NONE; space <= SPACES; ++space)
            CHECK(command_name(static_cast<command_space>(space), number | 0x80000000) == "");
        CHECK(control_name(number) == "");
        CHECK(heap_function_name(number) == "");
    }
    CHECK(class_name(0xffffffff) == "");
    CHECK(class_kind(0xffffffff) == ClassKind::other);
    CHECK(nv_status_name(0xfffffffe) == "");
    CHECK(!xid(0));
    CHECK(!xid(0xffffffff));
}

TEST_CASE("kinds of classes distinguish memory, addresses and work submission")
{
    CHECK(class_kind(0x40) == ClassKind::memory);
    CHECK(class_kind(0x3e) == ClassKind::memory);
    CHECK(class_kind(0x71) == ClassKind::memory);
    CHECK(class_kind(0x50a0) == ClassKind::virtual_memory);
    CHECK(class_kind(0x70) == ClassKind::virtual_memory);
    CHECK(class_kind(0x90f1) == ClassKind::address_space);
    CHECK(class_kind(0x41) == ClassKind::client);
    CHECK(class_kind(0xb2cc) == ClassKind::profiler);
    for (uint32_t work : {0xc46fu, 0xc86fu, 0xcbc0u, 0xc8b5u})
        CHECK(submits_work(class_kind(work)));
    for (uint32_t idle : {0x40u, 0x50a0u, 0xa06cu, 0xc661u, 0x80u, 0xffffu})
        CHECK(!submits_work(class_kind(idle)));
}

TEST_CASE("an Xid has a mnemonic, a meaning and possibly an action")
{
    REQUIRE(xid(79));
    CHECK(xid(79)->name == "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS");
    CHECK(xid(79)->meaning == "GPU fell off the bus");
    CHECK(xid(79)->action == "restart the machine");
    CHECK(xid(31)->meaning == "GPU memory page fault");
    CHECK(xid(30)->action == "");
    for (const XidRow& row : xids) {
        CAPTURE(row.number);
        CHECK(row.xid.meaning.size() > 3);
        CHECK(row.xid.meaning.size() <= 60);
        CHECK(row.xid.action.size() <= 40);
    }
}

static void check_rows(const auto& rows, auto name)
{
    uint64_t last = 0;
    for (const auto& row : rows) {
        CAPTURE(row.number, name(row));
        CHECK(row.number >= last); // each number occurs only once
        last = uint64_t{row.number} + 1;
        CHECK(name(row).size() >= 3);
        CHECK(name(row).size() <= 80);
        CHECK(name(row).find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string_view::npos);
        CHECK(short_name(name(row)) != "");
    }
}

TEST_CASE("tables have each number once, and printable names")
{
    auto name = [](const auto& row) { return row.name; };
    check_rows(nvidia_commands, name);
    check_rows(uvm_commands, name);
    check_rows(modeset_commands, name);
    check_rows(kfd_commands, name);
    check_rows(amdgpu_commands, name);
    check_rows(controls, name);
    check_rows(classes, name);
    check_rows(heap_functions, name);
    check_rows(statuses, name);
    check_rows(xids, [](const XidRow& row) { return row.xid.name; });
}

TEST_CASE("short names omit the common prefix of their kind")
{
    CHECK(short_name("NV_ESC_RM_CONTROL") == "RM_CONTROL");
    CHECK(short_name("NV2080_CTRL_CMD_FB_GET_INFO_V2") == "FB_GET_INFO_V2");
    CHECK(short_name("NV_SEMAPHORE_SURFACE_CTRL_CMD_BIND_CHANNEL") == "BIND_CHANNEL");
    CHECK(short_name("NV906F_CTRL_GET_CLASS_ENGINEID") == "GET_CLASS_ENGINEID");
    CHECK(short_name("AMDKFD_IOC_ALLOC_MEMORY_OF_GPU") == "ALLOC_MEMORY_OF_GPU");
    CHECK(short_name("DRM_AMDGPU_CS") == "AMDGPU_CS");
    CHECK(short_name("NVOS32_FUNCTION_ALLOC_SIZE") == "ALLOC_SIZE");
    CHECK(short_name("NV_ERR_NO_MEMORY") == "NO_MEMORY");
    CHECK(short_name("NV_WARN_NOTHING_TO_DO") == "WARN_NOTHING_TO_DO");
    CHECK(short_name("UVM_FREE") == "UVM_FREE");
    CHECK(short_name("NV_OK") == "NV_OK");
    CHECK(short_name("NVKMS_IOCTL") == "NVKMS_IOCTL");
    CHECK(short_name("TURING_CHANNEL_GPFIFO_A") == "TURING_CHANNEL_GPFIFO_A");
    CHECK(short_name("") == "");
}

TEST_CASE("short names of a driver's commands are distinct")
{
    std::set<std::string> seen;
    for (const NameRow& row : nvidia_commands)
        CHECK(seen.insert(short_name(row.name)).second);
    seen.clear();
    for (const NameRow& row : statuses)
        CHECK(seen.insert(short_name(row.name)).second);
}
