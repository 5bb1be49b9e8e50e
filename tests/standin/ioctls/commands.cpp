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
    RM("RM_ALLOC_OBJECT", ctl, 0x28, 20, 16, 12),
    RM("RM_FREE", ctl, 0x29, 16, 12),
    RM("RM_CONTROL", ctl, 0x2a, 32, 28, 8, none, false, 16, 24),
    RM("RM_ALLOC", ctl, 0x2b, 48, 40, 12, none, false, 16, 32),
    RM("RM_DUP_OBJECT", ctl, 0x34, 28, 24),
    RM("RM_SHARE", ctl, 0x35, 24, 20),
    RM("RM_I2C_ACCESS", gpu, 0x39, 32, 24),
    RM("RM_IDLE_CHANNELS", ctl, 0x41, 56, 48),
    RM("RM_VID_HEAP_CONTROL", ctl, 0x4a, 184, 20, 8),
    RM("RM_MAP_MEMORY", ctl, 0x4e, 56, 40, none, 24),
    RM("RM_UNMAP_MEMORY", ctl, 0x4f, 32, 24),
    RM("RM_GET_EVENT_DATA", ctl, 0x52, 16, 12),
    RM("RM_ALLOC_CONTEXT_DMA2", ctl, 0x54, 56, 48, 12, 40, true),
    RM("RM_MAP_MEMORY_DMA", ctl, 0x57, 64, 56, none, 24),
    RM("RM_UNMAP_MEMORY_DMA", ctl, 0x58, 48, 40),
    RM("RM_BIND_CONTEXT_DMA", ctl, 0x59, 16, 12),
    RM("RM_UPDATE_DEVICE_MAPPING_INFO", ctl, 0x5e, 40, 32),
    RM("RM_LOCKLESS_DIAGNOSTIC", ctl, 0x5f, 15412, 4),
    RM("CARD_INFO", ctl, 200, 32 * 72, none),
    RM("REGISTER_FD", gpu, 201, 4, none),
    RM("ALLOC_OS_EVENT", ctl, 206, 16, 12),
    RM("FREE_OS_EVENT", ctl, 207, 16, 12),
    RM("CHECK_VERSION_STR", ctl, 210, 72, none),
    RM("XFER_CMD", ctl, 211, 16, none),
    RM("ATTACH_GPUS_TO_FD", ctl, 212, 4, none),
    RM("QUERY_DEVICE_INTR", gpu, 213, 8, 4),
    RM("SYS_PARAMS", ctl, 214, 8, none),
    RM("NUMA_INFO", gpu, 215, 560, 4),
    RM("EXPORT_TO_DMABUF_FD", gpu, 217, 2608, none),
    RM("WAIT_OPEN_COMPLETE", gpu, 218, 8, none),
    UVM("UVM_INITIALIZE", 0x30000001, 16, 8),
    UVM("UVM_DEINITIALIZE", 0x30000002, 0, none),
    UVM("UVM_CREATE_RANGE_GROUP", 23, 16, 8),
    UVM("UVM_REGISTER_GPU_VASPACE", 25, 32, 28),
    UVM("UVM_UNREGISTER_GPU_VASPACE", 26, 20, 16),
    UVM("UVM_REGISTER_CHANNEL", 27, 56, 48, none, 40),
    UVM("UVM_UNREGISTER_CHANNEL", 28, 12, 8),
    UVM("UVM_ENABLE_PEER_ACCESS", 29, 36, 32),
    UVM("UVM_MAP_EXTERNAL_ALLOCATION", 33, 9264, 9260, none, 8),
    UVM("UVM_FREE", 34, 16, 8),
    UVM("UVM_REGISTER_GPU", 37, 40, 36),
    UVM("UVM_UNREGISTER_GPU", 38, 20, 16),
    UVM("UVM_PAGEABLE_MEM_ACCESS", 39, 8, 4),
    UVM("UVM_SET_PREFERRED_LOCATION", 42, 40, 36, none, 8),
    UVM("UVM_SET_ACCESSED_BY", 46, 40, 32, none, 8),
    UVM("UVM_MIGRATE", 51, 80, 72, none, 8),
    UVM("UVM_UNMAP_EXTERNAL", 66, 40, 32, none, 8),
    UVM("UVM_ALLOC_SEMAPHORE_POOL", 68, 9248, 9240, none, 8),
    UVM("UVM_VALIDATE_VA_RANGE", 72, 24, 16, none, 8, false, none, none, true),
    UVM("UVM_CREATE_EXTERNAL_RANGE", 73, 24, 16, none, 8, false, none, none, true),
    UVM("UVM_MM_INITIALIZE", 75, 8, 4),
    {"UVM_TOOLS_ENABLE_COUNTERS", tools, 60, 16, 8},
    {"UVM_TOOLS_FLUSH_EVENTS", tools, 67, 4, 0},
    {"NVKMS", "nvidia-modeset", _IOC(both, 'm', 0, 16), 16, none, 0},
    KFD("GET_VERSION", _IOC_READ, 0x1, 8, none),
    KFD("CREATE_QUEUE", both, 0x2, 88, none),
    KFD("WAIT_EVENTS", both, 0xc, 24, none),
    KFD("ALLOC_MEMORY_OF_GPU", both, 0x16, 40, none, none, 8),
    KFD("FREE_MEMORY_OF_GPU", _IOC_WRITE, 0x17, 8, none),
    KFD("MAP_MEMORY_TO_GPU", both, 0x18, 24, none),
};

bool is_uvm(uint32_t request)
{
    return _IOC_TYPE(request) == 0;
}

} // namespace

const Command* find_command(const std::string& name)
{
    for (const Command& command : commands)
        if (name == command.name)
            return &command;
    return nullptr;
}

uint32_t resized(uint32_t request, unsigned size)
{
    return is_uvm(request) ? request : (request & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT)) | size << _IOC_SIZESHIFT;
}

Command resized(Command c, unsigned size)
{
    std::string name = c.name;
    if (name == "RM_ALLOC" && size == 32)
        c.status = 28, c.parameters_size = none;
    else if (name == "RM_ALLOC" && size == 40)
        c.status = 36, c.parameters_size = none;
    else if (name == "RM_MAP_MEMORY_DMA" && size == 56)
        c.status = 48;
    else if (name == "RM_UNMAP_MEMORY_DMA" && size == 40)
        c.status = 32;
    else if (name == "UVM_FREE" && size == 24)
        c.status = 16, c.bytes = 8;
    else if (name == "UVM_UNREGISTER_CHANNEL" && size == 28)
        c.status = 24;
    else if (name == "UVM_MAP_EXTERNAL_ALLOCATION" && size == 1200)
        c.status = 1196;
    else if (name == "UVM_ALLOC_SEMAPHORE_POOL" && size == 1184)
        c.status = 1176;
    c.request = resized(c.request, size);
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
