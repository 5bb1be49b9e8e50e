// SPDX-License-Identifier: GPL-2.0
/* Stub of the nvidia module: its device nodes and functions, with scripted results. Also has nvidia-modeset,
 * nvidia-uvm, MIG capabilities and AMD's kfd, which really belong to other modules. The functions have the drivers'
 * names. */
#include "stub.h"

#include <linux/cdev.h>
#include <linux/ioctl.h>
#include <linux/module.h>

#define NVIDIA_MAJOR 195
#define CONTROL_MINOR 255
#define MODESET_MINOR 254
#define GPUS 2
#define MAGIC 'F'

#define OPEN(NAME)                                                                                                     \
    static noinline int NAME(struct inode* inode, struct file* file)                                                   \
    {                                                                                                                  \
        return stub_open(file);                                                                                        \
    }
#define CLOSE(NAME)                                                                                                    \
    static noinline int NAME(struct inode* inode, struct file* file)                                                   \
    {                                                                                                                  \
        stub_release(file);                                                                                            \
        return 0;                                                                                                      \
    }
/* SIZE: number of bytes at the argument's address that must be readable. */
#define IOCTL(NAME, SIZE)                                                                                              \
    static noinline long NAME(struct file* file, unsigned int cmd, unsigned long arg)                                  \
    {                                                                                                                  \
        return stub_call(file, SIZE, arg);                                                                             \
    }
#define MMAP(NAME)                                                                                                     \
    static noinline int NAME(struct file* file, struct vm_area_struct* vma)                                            \
    {                                                                                                                  \
        return stub_mmap(vma);                                                                                         \
    }
#define OPERATIONS(NAME, OPEN, CLOSE, IOCTL, MMAP)                                                                     \
    static const struct file_operations NAME = {                                                                       \
        .owner = THIS_MODULE,                                                                                          \
        .open = OPEN,                                                                                                  \
        .release = CLOSE,                                                                                              \
        .unlocked_ioctl = IOCTL,                                                                                       \
        .compat_ioctl = IOCTL,                                                                                         \
        .mmap = MMAP,                                                                                                  \
        .write = stub_write,                                                                                           \
    };

/* nvidiactl, nvidia0, ...: version 545 renamed the functions. */
#ifdef STUB_FRONTEND
#define NAME(function) nvidia_frontend_##function
#define GPUS_NAME "nvidia-frontend"
#define CONTROL_NAME "nvidia-frontend"
#else
#define NAME(function) nvidia_##function
#define GPUS_NAME "nvidia"
#define CONTROL_NAME "nvidiactl"
#endif

static noinline int NAME(open)(struct inode* inode, struct file* file)
{
    return iminor(inode) != CONTROL_MINOR && iminor(inode) >= GPUS ? -ENODEV : stub_open(file);
}

static noinline long NAME(unlocked_ioctl)(struct file* file, unsigned int cmd, unsigned long arg)
{
    long result = stub_call(file, _IOC_SIZE(cmd), arg);

    return result == 0 && _IOC_TYPE(cmd) != MAGIC ? -EINVAL : result;
}

CLOSE(NAME(close))
MMAP(NAME(mmap))
OPERATIONS(frontend, NAME(open), NAME(close), NAME(unlocked_ioctl), NAME(mmap))

OPEN(nvkms_open)
CLOSE(nvkms_close)
IOCTL(nvkms_unlocked_ioctl, _IOC_SIZE(cmd))
OPERATIONS(modeset, nvkms_open, nvkms_close, nvkms_unlocked_ioctl, NULL)

OPEN(nv_cap_drv_open)
CLOSE(nv_cap_drv_release)
OPERATIONS(caps, nv_cap_drv_open, nv_cap_drv_release, NULL, NULL)

OPEN(kfd_open)
CLOSE(kfd_release)
IOCTL(kfd_ioctl, _IOC_SIZE(cmd))
OPERATIONS(kfd, kfd_open, kfd_release, kfd_ioctl, NULL)

/* The command numbers of nvidia-uvm and nvidia-uvm-tools do not encode a size. */
OPEN(uvm_open_entry)
CLOSE(uvm_release_entry)
IOCTL(uvm_unlocked_ioctl_entry, 0)
MMAP(uvm_mmap_entry)
OPERATIONS(uvm, uvm_open_entry, uvm_release_entry, uvm_unlocked_ioctl_entry, uvm_mmap_entry)

OPEN(uvm_tools_open_entry)
CLOSE(uvm_tools_release_entry)
IOCTL(uvm_tools_unlocked_ioctl_entry, 0)
OPERATIONS(uvm_tools, uvm_tools_open_entry, uvm_tools_release_entry, uvm_tools_unlocked_ioctl_entry, NULL)

static struct device_nodes {
    const char* name; /* NULL: nodes of the previous device's major number */
    const struct file_operations* operations;
    unsigned int nodes, reserved;
    dev_t first; /* 0: the kernel chooses a major number */
    struct cdev cdev;
} devices[] = {
    {GPUS_NAME, &frontend, MODESET_MINOR, MODESET_MINOR, MKDEV(NVIDIA_MAJOR, 0)},
    {CONTROL_NAME, &frontend, 1, 1, MKDEV(NVIDIA_MAJOR, CONTROL_MINOR)},
    {"nvidia-modeset", &modeset, 1, 1, MKDEV(NVIDIA_MAJOR, MODESET_MINOR)},
    {"nvidia-uvm", &uvm, 1, 2},
    {NULL, &uvm_tools, 1}, /* nvidia-uvm-tools */
    {"nvidia-caps", &caps, 16, 16},
    {"kfd", &kfd, 1, 1},
};

static int reserve(struct device_nodes* device)
{
    if (!device->name) {
        device->first = device[-1].first + device[-1].nodes;
        return 0;
    }
    return device->first ? register_chrdev_region(device->first, device->reserved, device->name)
                         : alloc_chrdev_region(&device->first, 0, device->reserved, device->name);
}

static void release(struct device_nodes* device)
{
    if (device->name)
        unregister_chrdev_region(device->first, device->reserved);
}

/* Removes the first `count` devices. */
static void remove(size_t count)
{
    while (count--) {
        cdev_del(&devices[count].cdev);
        release(&devices[count]);
    }
}

static int add(struct device_nodes* device)
{
    int error = reserve(device);

    if (error)
        return error;
    cdev_init(&device->cdev, device->operations);
    error = cdev_add(&device->cdev, device->first, device->nodes);
    if (error)
        release(device);
    return error;
}

/* Programs that make invalid calls check for this parameter, which the real driver does not have. */
static bool standin = true;
module_param(standin, bool, 0444);

static int __init start(void)
{
    int error = stub_proc_init();
    size_t i;

    for (i = 0; !error && i < ARRAY_SIZE(devices); i++)
        error = add(&devices[i]);
    if (error) {
        remove(i ? i - 1 : 0);
        stub_proc_exit();
    }
    return error;
}

static void __exit end(void)
{
    remove(ARRAY_SIZE(devices));
    stub_proc_exit();
}

module_init(start);
module_exit(end);
MODULE_DESCRIPTION("Stand-in for a GPU driver, for tests of tracers");
MODULE_LICENSE("GPL");
MODULE_VERSION(STUB_VERSION);
