/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off */
/* The tracepoint of drivers since 575, with the same fields. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nvidia

#if !defined(GPUSNOOP_STUB_XID_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define GPUSNOOP_STUB_XID_TRACE_H

#include <linux/pci.h>
#include <linux/tracepoint.h>
#include <linux/version.h>

#ifndef ASSIGN
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define ASSIGN(field, value) __assign_str(field)
#else
#define ASSIGN(field, value) __assign_str(field, value)
#endif
#endif

TRACE_EVENT(nvidia_dev_xid,
	TP_PROTO(const struct pci_dev *pdev, uint32_t error_code, const char *msg),
	TP_ARGS(pdev, error_code, msg),
	TP_STRUCT__entry(
		__string(dev, pci_name(pdev))
		__field(u32, error_code)
		__string(msg, msg)
	),
	TP_fast_assign(
		ASSIGN(dev, pci_name(pdev));
		ASSIGN(msg, msg);
		__entry->error_code = error_code;
	),
	TP_printk("Xid (PCI:%s): %u, %s", __get_str(dev), __entry->error_code, __get_str(msg))
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE xid_trace
#include <trace/define_trace.h>
