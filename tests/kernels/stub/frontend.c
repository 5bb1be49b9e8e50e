// SPDX-License-Identifier: GPL-2.0
/* /dev/nvidiactl, /dev/nvidia0, ...: functions named as in NVIDIA's driver. Version 545 renamed them. */
#include "stub.h"

#include <linux/ioctl.h>

#define GPUS 2
#define MAGIC 'F'

#ifdef STUB_FRONTEND
#define NAME(function) nvidia_frontend_##function
#else
#define NAME(function) nvidia_##function
#endif

int NAME(open)(struct inode* inode, struct file* file);
int NAME(close)(struct inode* inode, struct file* file);
long NAME(unlocked_ioctl)(struct file* file, unsigned int cmd, unsigned long arg);
int NAME(mmap)(struct file* file, struct vm_area_struct* vma);

noinline int NAME(open)(struct inode* inode, struct file* file)
{
    unsigned int minor = iminor(inode);

    if (minor != CONTROL_MINOR && minor >= GPUS)
        return -ENODEV;
    return stub_open(file);
}

noinline int NAME(close)(struct inode* inode, struct file* file)
{
    stub_release(file);
    return 0;
}

noinline long NAME(unlocked_ioctl)(struct file* file, unsigned int cmd, unsigned long arg)
{
    long result = stub_call(file, _IOC_SIZE(cmd), arg);

    return result == 0 && _IOC_TYPE(cmd) != MAGIC ? -EINVAL : result;
}

noinline int NAME(mmap)(struct file* file, struct vm_area_struct* vma)
{
    return stub_mmap(vma);
}

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .open = NAME(open),
    .release = NAME(close),
    .unlocked_ioctl = NAME(unlocked_ioctl),
    .compat_ioctl = NAME(unlocked_ioctl),
    .mmap = NAME(mmap),
    .write = stub_write,
};

static struct stub_device gpus = {.first = MKDEV(NVIDIA_MAJOR, 0), .count = MODESET_MINOR};
static struct stub_device control = {.first = MKDEV(NVIDIA_MAJOR, CONTROL_MINOR), .count = 1};

#ifdef STUB_FRONTEND
#define GPUS_NAME "nvidia-frontend"
#define CONTROL_NAME "nvidia-frontend"
#else
#define GPUS_NAME "nvidia"
#define CONTROL_NAME "nvidiactl"
#endif

int stub_frontend_init(void)
{
    int error = stub_add_device(&gpus, GPUS_NAME, &operations);

    if (!error) {
        error = stub_add_device(&control, CONTROL_NAME, &operations);
        if (error)
            stub_remove_device(&gpus);
    }
    return error;
}

void stub_frontend_exit(void)
{
    stub_remove_device(&control);
    stub_remove_device(&gpus);
}
