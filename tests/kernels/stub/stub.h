/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUSNOOP_STUB_H
#define GPUSNOOP_STUB_H

#include "script.h"

#include <linux/cdev.h>
#include <linux/fs.h>
#include <linux/pci.h>

#define NVIDIA_MAJOR 195
#define CONTROL_MINOR 255
#define MODESET_MINOR 254

/* One or more device nodes of the same kind. */
struct stub_device {
    dev_t first;
    unsigned int count;
    struct cdev cdev;
};
int stub_add_device(struct stub_device* device, const char* name, const struct file_operations* operations);
void stub_remove_device(struct stub_device* device);

/* Scripted results, stored per open file. */
int stub_open(struct file* file);
void stub_release(struct file* file);
ssize_t stub_write(struct file* file, const char __user* buffer, size_t size, loff_t* offset);
long stub_call(struct file* file, size_t size, unsigned long arg); /* size: bytes at arg that must be readable */
int stub_mmap(struct vm_area_struct* vma);

void stub_xid(const struct stub_script* script);

int stub_frontend_init(void);
void stub_frontend_exit(void);
int stub_uvm_init(void);
void stub_uvm_exit(void);
int stub_others_init(void);
void stub_others_exit(void);
int stub_proc_init(void);
void stub_proc_exit(void);

#endif
