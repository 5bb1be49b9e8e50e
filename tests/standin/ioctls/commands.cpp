// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <cstring>
#include <sys/ioctl.h>

namespace ioctls {
namespace {

constexpr unsigned both = _IOC_READ | _IOC_WRITE;

constexpr uint32_t rm(unsigned number, unsigned size)
{
    return _IOC(both, 'F', number, size);
}

constexpr const char *ctl = "nvidiactl", *gpu = "nvidia0", *uvm = "nvidia-uvm", *tools = "nvidia-uvm-tools";

#define RM(name, device, number, size, ...)                                                                            \
    {                                                                                                                  \
        name, device, rm(number, size), size, __VA_ARGS__                                                              \
    }
#define UVM(name, number, size, ...)                                                                                   \
    {                                                                                                                  \
        name, uvm, number, size, __VA_ARGS__                                                                           \
    }
#define KFD(name, direction, number, size, ...)                                                                        \
    {                                                                                                                  \
        name, "kfd", _IOC(direction, 'K', number, size), size, __VA_ARGS__                                             \
    }

// name, device, number, size, status, subject, bytes, limit, parameters, parameters_size
const Command commands[] = {
    RM("RM_ALLOC_MEMORY", gpu, 0x27, 56, 40, 12, 32, true),
    RM("RM_FREE", ctl, 0x29, 16, 12),
    RM("RM_CONTROL", ctl, 0x2a, 32, 28, 8, none, false, 16, 24),
    RM("RM_ALLOC", ctl, 0x2b, 48, 40, 12, none, false, 16, 32),
    RM("RM_DUP_OBJECT", ctl, 0x34, 28, 24),
    RM("RM_VID_HEAP_CONTROL", ctl, 0x4a, 184, 20, 8),
    RM("RM_MAP_MEMORY", ctl, 0x4e, 56, 40, none, 24),
    RM("CARD_INFO", ctl, 200, 32 * 72, none),
    RM("CHECK_VERSION_STR", ctl, 210, 72, none),
    UVM("UVM_INITIALIZE", 0x30000001, 16, 8),
    UVM("UVM_FREE", 34, 16, 8),
    UVM("UVM_MIGRATE", 51, 80, 72, none, 8),
    UVM("UVM_CREATE_EXTERNAL_RANGE", 73, 24, 16, none, 8, false, none, none, true),
    {"UVM_TOOLS_FLUSH_EVENTS", tools, 67, 4, 0},
    KFD("GET_VERSION", _IOC_READ, 0x1, 8, none),
    KFD("CREATE_QUEUE", both, 0x2, 88, none),
    KFD("WAIT_EVENTS", both, 0xc, 24, none),
    KFD("ALLOC_MEMORY_OF_GPU", both, 0x16, 40, none, none, 8),
    KFD("FREE_MEMORY_OF_GPU", _IOC_WRITE, 0x17, 8, none),
};

} // namespace

const Command* find_command(const std::string& name)
{
    for (const Command& command : commands)
        if (name == command.name)
            return &command;
    return nullptr;
}

Command resized(Command c, unsigned size)
{
    std::string name = c.name;
    if (name == "RM_ALLOC" && size == 32)
        c.status = 28, c.parameters_size = none;
    else if (name == "RM_ALLOC" && size == 40)
        c.status = 36, c.parameters_size = none;
    if (_IOC_TYPE(c.request)) // requests of UVM contain no size
        c.request = (c.request & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT)) | size << _IOC_SIZESHIFT;
    c.size = size;
    return c;
}

int heap_bytes(uint32_t function)
{
    return function == 2 ? 88 : function == 14 ? 80 : none;
}

int memory_bytes(uint32_t class_number)
{
    switch (class_number) {
    case 0x3e: // system memory
    case 0x40: // device memory
    case 0x70: // addresses only
    case 0x50a0:
        return 64;
    case 0xf8: // fabric
        return 8;
    case 0x90f1: // address space
        return 8;
    default:
        return none;
    }
}

} // namespace ioctls
