// SPDX-License-Identifier: GPL-2.0
/* /proc/driver/nvidia: the driver's version and its GPUs. */
#include "stub.h"

#include <linux/proc_fs.h>
#include <linux/seq_file.h>

static const char* const places[] = {"0000:00:02.0", "0000:00:01.0"};

static int version(struct seq_file* file, void* data)
{
    seq_puts(file, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " STUB_VERSION "  stand-in\n");
    return 0;
}

static int information(struct seq_file* file, void* data)
{
    unsigned long number = (unsigned long)file->private;

    seq_printf(file, "Model: \t\t Stand-in GPU\nIRQ:   \t\t 11\n");
    seq_printf(file, "GPU UUID: \t GPU-00000000-0000-0000-0000-%012lu\n", number);
    seq_printf(file, "Bus Type: \t PCIe\nBus Location: \t %s\nDevice Minor: \t %lu\n", places[number], number);
    return 0;
}

static struct proc_dir_entry* top;

int stub_proc_init(void)
{
    struct proc_dir_entry *gpus, *gpu;
    unsigned long i;

    top = proc_mkdir("driver/nvidia", NULL);
    if (!top)
        return -ENOMEM;
    proc_create_single("version", 0444, top, version);
    gpus = proc_mkdir("gpus", top);
    for (i = 0; i < ARRAY_SIZE(places); i++) {
        gpu = proc_mkdir(places[i], gpus);
        proc_create_single_data("information", 0444, gpu, information, (void*)i);
    }
    return 0;
}

void stub_proc_exit(void)
{
    proc_remove(top);
}
