// SPDX-License-Identifier: GPL-2.0
/* Error reports: a line in the kernel log with the process, a function that can be probed, and, in newer drivers, a
 * tracepoint without the process. */
#include "stub.h"

#include <linux/slab.h>
#include <linux/stdarg.h>

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

void stub_xid(const struct stub_script* script)
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
