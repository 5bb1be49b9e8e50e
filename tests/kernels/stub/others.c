// SPDX-License-Identifier: GPL-2.0
/* /dev/nvidia-modeset, MIG capabilities and AMD's /dev/kfd, which really belong to other modules. */
#include "stub.h"

#include <linux/ioctl.h>

static noinline int nvkms_open(struct inode* inode, struct file* filp)
{
    return stub_open(filp);
}

static noinline int nvkms_close(struct inode* inode, struct file* filp)
{
    stub_release(filp);
    return 0;
}

static noinline long nvkms_unlocked_ioctl(struct file* filp, unsigned int cmd, unsigned long arg)
{
    return stub_call(filp, _IOC_SIZE(cmd), arg);
}

static noinline int nv_cap_drv_open(struct inode* inode, struct file* file)
{
    return stub_open(file);
}

static noinline int nv_cap_drv_release(struct inode* inode, struct file* file)
{
    stub_release(file);
    return 0;
}

static noinline int kfd_open(struct inode* inode, struct file* filep)
{
    return stub_open(filep);
}

static noinline int kfd_release(struct inode* inode, struct file* filep)
{
    stub_release(filep);
    return 0;
}

static noinline long kfd_ioctl(struct file* filep, unsigned int cmd, unsigned long arg)
{
    return stub_call(filep, _IOC_SIZE(cmd), arg);
}

static const struct file_operations modeset_operations = {
    .owner = THIS_MODULE,
    .open = nvkms_open,
    .release = nvkms_close,
    .unlocked_ioctl = nvkms_unlocked_ioctl,
    .compat_ioctl = nvkms_unlocked_ioctl,
    .write = stub_write,
};

static const struct file_operations caps_operations = {
    .owner = THIS_MODULE,
    .open = nv_cap_drv_open,
    .release = nv_cap_drv_release,
    .write = stub_write,
};

static const struct file_operations kfd_operations = {
    .owner = THIS_MODULE,
    .open = kfd_open,
    .release = kfd_release,
    .unlocked_ioctl = kfd_ioctl,
    .write = stub_write,
};

static struct stub_device modeset = {.first = MKDEV(NVIDIA_MAJOR, MODESET_MINOR), .count = 1};
static struct stub_device caps = {.count = 16};
static struct stub_device kfd = {.count = 1};

int stub_others_init(void)
{
    int error = stub_add_device(&modeset, "nvidia-modeset", &modeset_operations);

    if (error)
        return error;
    error = stub_add_device(&caps, "nvidia-caps", &caps_operations);
    if (!error) {
        error = stub_add_device(&kfd, "kfd", &kfd_operations);
        if (error)
            stub_remove_device(&caps);
    }
    if (error)
        stub_remove_device(&modeset);
    return error;
}

void stub_others_exit(void)
{
    stub_remove_device(&kfd);
    stub_remove_device(&caps);
    stub_remove_device(&modeset);
}
