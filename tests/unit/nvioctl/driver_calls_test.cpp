// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver_names.hpp"
#include "gpu/gpu_files.hpp"
#include "tests/unit/base/folder.hpp"
#include "tools/nvioctl/driver_calls.hpp"

#include <cerrno>

using namespace gpusnoop;

namespace {

uint64_t subject_of(uint32_t request, uint32_t subject)
{
    return uint64_t{subject} << 32 | request;
}

std::string ioctl_text(uint8_t node, uint64_t subject, uint8_t flags = 0)
{
    return command_text(ENTRY_IOCTL, node, subject, flags);
}

call_key key_of(uint8_t node, uint64_t subject, uint8_t flags)
{
    call_key key{};
    key.kind = ENTRY_IOCTL;
    key.driver.node = node;
    key.subject = subject;
    key.flags = flags;
    return key;
}

} // namespace

TEST_CASE("commands are shown by name, with their subject")
{
    CHECK(ioctl_text(NODE_NVIDIA_CTL, subject_of(0xc020462a, 0x20801303), CALL_SUBJECT) == "RM_CONTROL FB_GET_INFO_V2");
    CHECK(ioctl_text(NODE_NVIDIA_CTL, subject_of(0xc030462b, 0xc46f), CALL_SUBJECT) ==
          "RM_ALLOC TURING_CHANNEL_GPFIFO_A");
    CHECK(ioctl_text(NODE_NVIDIA_CTL, subject_of(0xc0b8464a, 2), CALL_SUBJECT)
              .starts_with("RM_VID_HEAP_CONTROL ALLOC_SIZE"));
    CHECK(ioctl_text(NODE_NVIDIA_GPU, 0xc0104629) == "RM_FREE");
    CHECK(ioctl_text(NODE_NVIDIA_UVM, 51) == "UVM_MIGRATE");
    CHECK(ioctl_text(NODE_NVIDIA_UVM, 0x30000001) == "UVM_INITIALIZE");
    CHECK(ioctl_text(NODE_NVIDIA_UVM_TOOLS, 57) == "UVM_TOOLS_SET_NOTIFICATION_THRESHOLD");
    CHECK(ioctl_text(NODE_KFD, 0xc0284b16) == "ALLOC_MEMORY_OF_GPU");
    CHECK(command_text(ENTRY_MMAP, NODE_NVIDIA_CTL, 0, 0) == "mmap");
}

TEST_CASE("unknown numbers are shown in hex")
{
    CHECK(ioctl_text(NODE_NVIDIA_CTL, 0xc00446ff) == "0xc00446ff");
    CHECK(ioctl_text(NODE_NVIDIA_UVM, 0x12345) == "0x12345");
    CHECK(ioctl_text(NODE_NVIDIA_CTL, subject_of(0xc020462a, 0xdead0001), CALL_SUBJECT) == "RM_CONTROL 0xdead0001");
    CHECK(ioctl_text(NODE_NVIDIA_CTL, subject_of(0xc030462b, 0xfff3), CALL_SUBJECT) == "RM_ALLOC 0xfff3");
    // Numbers of commands that belong to another driver.
    CHECK(ioctl_text(NODE_NVIDIA_CTL, 0xc020552a) == "0xc020552a");
    CHECK(ioctl_text(NODE_NVIDIA_CAPS, 0xc020462a) == "0xc020462a");
    // If its subject could not be read, a command is shown without it.
    CHECK(ioctl_text(NODE_NVIDIA_CTL, 0xc020462a) == "RM_CONTROL");
}

TEST_CASE("the upper half of a control's number is its class")
{
    CHECK(object_class(key_of(NODE_NVIDIA_CTL, subject_of(0xc020462a, 0x20801303), CALL_SUBJECT)) == 0x2080);
    CHECK(class_text(0x2080) == "NV20_SUBDEVICE_0");
    CHECK(object_class(key_of(NODE_NVIDIA_CTL, subject_of(0xc030462b, 0xc46f), CALL_SUBJECT)) == 0xc46f);
    CHECK(class_text(0xfff3) == "0xfff3");
    CHECK_FALSE(object_class(key_of(NODE_NVIDIA_CTL, 0xc020462a, 0)));
    CHECK_FALSE(object_class(key_of(NODE_NVIDIA_UVM, 51, 0)));
}

TEST_CASE("the result shows the driver's status, and warnings are not failures")
{
    CHECK(outcome_text(OUTCOME_OK, 0) == "ok");
    CHECK(outcome_text(OUTCOME_STATUS, 0) == "ok");
    CHECK(outcome_text(OUTCOME_STATUS, 0x51) == "NO_MEMORY");
    CHECK(outcome_text(OUTCOME_STATUS, 0x7777) == "0x7777");
    CHECK(outcome_text(OUTCOME_ERRNO, -EINVAL) == "EINVAL");
    CHECK(outcome_text(OUTCOME_ERRNO, -100000) == "errno 100000");
    CHECK(outcome_text(OUTCOME_UNKNOWN, 0) == "?");
    CHECK(is_failure(OUTCOME_STATUS, 0x51));
    CHECK(is_failure(OUTCOME_ERRNO, -EIO));
    CHECK_FALSE(is_failure(OUTCOME_STATUS, 0x10006));
    CHECK_FALSE(is_failure(OUTCOME_UNKNOWN, 0));
}

TEST_CASE("driver_nodes reads device numbers")
{
    const Folder root;
    root.file("proc/devices", "Character devices:\n195 nvidia-frontend\n226 drm\n234 nvidia-caps\n"
                              "511 nvidia-uvm\n\nBlock devices:\n  7 nvidia-uvm\n");
    root.file("sys/class/drm/renderD128/dev", "226:128\n");
    root.link("sys/class/drm/renderD128/device/driver", "/sys/bus/pci/drivers/amdgpu");
    const DriverNodes nodes = driver_nodes(root.path());
    CHECK(nodes.at(device_number(195, 255)) == NODE_NVIDIA_CTL);
    CHECK(nodes.at(device_number(195, MINOR_ANY)) == NODE_NVIDIA_GPU);
    CHECK(nodes.at(device_number(511, 0)) == NODE_NVIDIA_UVM);
    CHECK(nodes.at(device_number(511, 1)) == NODE_NVIDIA_UVM_TOOLS);
    CHECK(nodes.at(device_number(234, MINOR_ANY)) == NODE_NVIDIA_CAPS);
    CHECK(nodes.at(device_number(226, 128)) == NODE_AMDGPU);
    CHECK(nodes.size() == 7);
    CHECK(driver_nodes(root.file("nowhere")).empty());
    CHECK(node_name(NODE_NVIDIA_GPU, 3) == "nvidia3");
    CHECK(node_name(NODE_AMDGPU, 128) == "renderD128");
    CHECK(node_name(NODE_AMDGPU, 1) == "card1");
    CHECK(node_name(NODE_NVIDIA_CAPS, 12) == "nvidia-cap12");
    CHECK(node_name(200, 0) == "?");
}
