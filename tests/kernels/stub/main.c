// SPDX-License-Identifier: GPL-2.0
/* Stub of the nvidia module: its device nodes and functions, with scripted results. */
#include "stub.h"

#include <linux/module.h>

int stub_add_device(struct stub_device* device, const char* name, const struct file_operations* operations)
{
    int error = device->first ? register_chrdev_region(device->first, device->count, name)
                              : alloc_chrdev_region(&device->first, 0, device->count, name);

    if (error)
        return error;
    cdev_init(&device->cdev, operations);
    error = cdev_add(&device->cdev, device->first, device->count);
    if (error)
        unregister_chrdev_region(device->first, device->count);
    return error;
}

void stub_remove_device(struct stub_device* device)
{
    cdev_del(&device->cdev);
    unregister_chrdev_region(device->first, device->count);
}

/* Programs that make invalid calls check for this parameter, which the real driver does not have. */
static bool standin = true;
module_param(standin, bool, 0444);

static int __init start(void)
{
    int error = stub_proc_init();

    if (error)
        return error;
    error = stub_frontend_init();
    if (error)
        goto proc;
    error = stub_uvm_init();
    if (error)
        goto frontend;
    error = stub_others_init();
    if (error)
        goto uvm;
    return 0;
uvm:
    stub_uvm_exit();
frontend:
    stub_frontend_exit();
proc:
    stub_proc_exit();
    return error;
}

static void __exit end(void)
{
    stub_others_exit();
    stub_uvm_exit();
    stub_frontend_exit();
    stub_proc_exit();
}

module_init(start);
module_exit(end);
MODULE_DESCRIPTION("Stand-in for a GPU driver, for tests of tracers");
MODULE_LICENSE("GPL");
MODULE_VERSION(STUB_VERSION);
