/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUSNOOP_STUB_H
#define GPUSNOOP_STUB_H

#include "script.h"

#include <linux/fs.h>
#include <linux/pci.h>

/* Scripted results, stored per open file. */
int stub_open(struct file* file);
void stub_release(struct file* file);
ssize_t stub_write(struct file* file, const char __user* buffer, size_t size, loff_t* offset);
long stub_call(struct file* file, size_t size, unsigned long arg); /* size: bytes at arg that must be readable */
int stub_mmap(struct vm_area_struct* vma);

void stub_xid(const struct stub_script* script);

int stub_proc_init(void);
void stub_proc_exit(void);

#endif
