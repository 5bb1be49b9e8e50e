// SPDX-License-Identifier: GPL-2.0
/* /dev/nvidia-uvm and /dev/nvidia-uvm-tools. Their command numbers do not encode a size. */
#include "stub.h"

static noinline int uvm_open_entry(struct inode* inode, struct file* filp)
{
    return stub_open(filp);
}

static noinline int uvm_release_entry(struct inode* inode, struct file* filp)
{
    stub_release(filp);
    return 0;
}

static noinline long uvm_unlocked_ioctl_entry(struct file* filp, unsigned int cmd, unsigned long arg)
{
    return stub_call(filp, 0, arg);
}

static noinline int uvm_mmap_entry(struct file* filp, struct vm_area_struct* vma)
{
    return stub_mmap(vma);
}

static noinline int uvm_tools_open_entry(struct inode* inode, struct file* filp)
{
    return stub_open(filp);
}

static noinline int uvm_tools_release_entry(struct inode* inode, struct file* filp)
{
    stub_release(filp);
    return 0;
}

static noinline long uvm_tools_unlocked_ioctl_entry(struct file* filp, unsigned int cmd, unsigned long arg)
{
    return stub_call(filp, 0, arg);
}

static const struct file_operations uvm_operations = {
    .owner = THIS_MODULE,
    .open = uvm_open_entry,
    .release = uvm_release_entry,
    .unlocked_ioctl = uvm_unlocked_ioctl_entry,
    .compat_ioctl = uvm_unlocked_ioctl_entry,
    .mmap = uvm_mmap_entry,
    .write = stub_write,
};

static const struct file_operations tools_operations = {
    .owner = THIS_MODULE,
    .open = uvm_tools_open_entry,
    .release = uvm_tools_release_entry,
    .unlocked_ioctl = uvm_tools_unlocked_ioctl_entry,
    .compat_ioctl = uvm_tools_unlocked_ioctl_entry,
    .write = stub_write,
};

static dev_t first;
static struct cdev uvm, tools;

int stub_uvm_init(void)
{
    int error = alloc_chrdev_region(&first, 0, 2, "nvidia-uvm");

    if (error)
        return error;
    cdev_init(&uvm, &uvm_operations);
    cdev_init(&tools, &tools_operations);
    error = cdev_add(&uvm, first, 1);
    if (!error) {
        error = cdev_add(&tools, first + 1, 1);
        if (error)
            cdev_del(&uvm);
    }
    if (error)
        unregister_chrdev_region(first, 2);
    return error;
}

void stub_uvm_exit(void)
{
    cdev_del(&tools);
    cdev_del(&uvm);
    unregister_chrdev_region(first, 2);
}
