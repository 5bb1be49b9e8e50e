// SPDX-License-Identifier: GPL-2.0
/* Stub of the nvidia module: its device nodes and functions, with scripted results. Also has nvidia-modeset,
 * nvidia-uvm, MIG capabilities and AMD's kfd, which really belong to other modules. The functions have the drivers'
 * names. */
#include "script.h"

#include <linux/cdev.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/ioctl.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/stdarg.h>
#include <linux/uaccess.h>

/* Error reports: a line in the kernel log with the process, a function that can be probed, and, in newer drivers, a
 * tracepoint without the process. */
#ifdef STUB_TRACEPOINT
#define CREATE_TRACE_POINTS
#include "xid_trace.h"
#else
#define trace_nvidia_dev_xid(device, number, message) ((void)0)
#endif

void nv_report_error(struct pci_dev* dev, u32 error_number, const char* format, va_list ap);

noinline void nv_report_error(struct pci_dev* dev, u32 error_number, const char* format, va_list ap)
{
    char* message = kvasprintf(GFP_KERNEL, format, ap);

    if (!message)
        return;
    trace_nvidia_dev_xid(dev, error_number, message);
    kfree(message);
}

static noinline void report(struct pci_dev* dev, u32 number, const char* format, ...)
{
    va_list ap;

    va_start(ap, format);
    nv_report_error(dev, number, format, ap);
    va_end(ap);
}

static void stub_xid(const struct stub_script* script)
{
    /* Any device will do, since only its name is used. */
    struct pci_dev* dev = pci_get_domain_bus_and_slot(0, 0, PCI_DEVFN(2, 0));
    char who[48] = "";

    if (!dev)
        dev = pci_get_device(PCI_ANY_ID, PCI_ANY_ID, NULL);
    if (!dev)
        return;
    if (script->xid_pid)
        snprintf(who, sizeof(who), "pid=%u, name=%s, ", script->xid_pid, script->xid_name);
    /* The driver omits the function number: 0000:00:02. */
    printk("NVRM: Xid (PCI:%.10s): %u, %s%s\n", pci_name(dev), script->xid, who, script->xid_text);
    report(dev, script->xid, "%s", script->xid_text);
    pci_dev_put(dev);
}

/* Scripted results of calls, stored per open file. Scripts are set by write(2), so that a tracer of ioctls sees no
 * additional calls. */
struct entry {
    struct list_head list;
    pid_t tid; /* threads share files, but not results */
    struct stub_script script;
};

struct results {
    spinlock_t lock;
    struct list_head entries;
};

static int stub_open(struct file* file)
{
    struct results* results = kzalloc(sizeof(*results), GFP_KERNEL);

    if (!results)
        return -ENOMEM;
    spin_lock_init(&results->lock);
    INIT_LIST_HEAD(&results->entries);
    file->private_data = results;
    return 0;
}

static void stub_release(struct file* file)
{
    struct results* results = file->private_data;
    struct entry *entry, *next;

    list_for_each_entry_safe (entry, next, &results->entries, list) {
        kfree(entry);
    }
    kfree(results);
}

static ssize_t stub_write(struct file* file, const char __user* buffer, size_t size, loff_t* offset)
{
    struct results* results = file->private_data;
    struct entry* entry;

    if (size != sizeof(entry->script))
        return -EINVAL;
    entry = kzalloc(sizeof(*entry), GFP_KERNEL);
    if (!entry)
        return -ENOMEM;
    if (copy_from_user(&entry->script, buffer, size)) {
        kfree(entry);
        return -EFAULT;
    }
    entry->tid = current->pid;
    entry->script.xid_name[sizeof(entry->script.xid_name) - 1] = '\0';
    entry->script.xid_text[sizeof(entry->script.xid_text) - 1] = '\0';
    if (!entry->script.calls) {
        stub_xid(&entry->script);
        kfree(entry);
        return size;
    }
    spin_lock(&results->lock);
    list_add_tail(&entry->list, &results->entries);
    spin_unlock(&results->lock);
    return size;
}

/* The script for this call; all zero if there is none. */
static struct stub_script next_of_thread(struct results* results)
{
    struct stub_script script = {};
    struct entry* entry;

    spin_lock(&results->lock);
    list_for_each_entry (entry, &results->entries, list) {
        if (entry->tid != current->pid)
            continue;
        script = entry->script;
        if (!--entry->script.calls) {
            list_del(&entry->list);
            kfree(entry);
        }
        break;
    }
    spin_unlock(&results->lock);
    return script;
}

static bool readable(unsigned long arg, size_t size)
{
    void* copy;
    bool ok;

    if (!size || size > (1 << 20))
        return !size;
    copy = kvmalloc(size, GFP_KERNEL);
    ok = copy && !copy_from_user(copy, (void __user*)arg, size);
    kvfree(copy);
    return ok;
}

/* False if a fatal signal interrupted the delay. */
static bool delayed(u32 microseconds)
{
    ktime_t time = ns_to_ktime((u64)microseconds * NSEC_PER_USEC);

    if (microseconds) {
        set_current_state(TASK_KILLABLE);
        schedule_hrtimeout(&time, HRTIMER_MODE_REL);
    }
    return !microseconds || !fatal_signal_pending(current);
}

static long stub_call(struct file* file, size_t size, unsigned long arg)
{
    struct stub_script script = next_of_thread(file->private_data);

    if (!readable(arg, size) || !readable(script.touch_at, script.touch_size))
        return -EFAULT;
    if (!delayed(script.delay_us))
        return -EINTR;
    if (script.status_at && put_user(script.status, (u32 __user*)script.status_at))
        return -EFAULT;
    if (script.xid)
        stub_xid(&script);
    return script.result;
}

static int stub_mmap(struct vm_area_struct* vma)
{
    struct page* page = alloc_page(GFP_KERNEL | __GFP_ZERO);
    int error = page ? vm_insert_page(vma, vma->vm_start, page) : -ENOMEM;

    if (page)
        put_page(page);
    return error;
}

/* /proc/driver/nvidia: the driver's version and its GPUs. */
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

static int stub_proc_init(void)
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

static void stub_proc_exit(void)
{
    proc_remove(top);
}

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
