// SPDX-License-Identifier: Apache-2.0
// GPU errors (Xids) reported by NVIDIA's driver. The process that caused an error is read from the kernel log, because
// the hooked function has no argument for it and may run in any process.
#pragma once

#include "attach/links.hpp"
#include "attach/tier.hpp"
#include "base/bpf_object.hpp"
#include "base/fd.hpp"
#include "bpf/shared/ioctl.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// A line of the kernel log: "NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=python3, text". The parts after the error
// number may be missing.
struct XidLogLine {
    std::string device; // "0000:3b:00"
    uint32_t xid = 0;
    std::optional<uint32_t> pid;
    std::string comm; // empty: unknown
    std::string text;
    uint64_t read_ns = 0; // CLOCK_MONOTONIC
};

// Parses a record of /dev/kmsg, such as "6,1234,567890,-;NVRM: Xid ...". nullopt if the record is not about an Xid.
std::optional<XidLogLine> parse_xid(std::string_view record);

struct XidReport {
    uint32_t xid = 0;
    uint64_t time_ns = 0; // CLOCK_MONOTONIC
    std::string device;   // PCI address
    std::string text;
    std::optional<uint32_t> pid;
    std::string comm;
};

// Number of Xids that a process caused, and the last one.
struct XidsOf {
    uint32_t last = 0;
    uint64_t count = 0;
};

class Xids {
public:
    // Selects the BPF program to load. Must therefore run after the BPF object is opened and before it is loaded.
    explicit Xids(bpf_object* object);

    // Passes the offsets of the tracepoint's fields to the BPF program.
    void configure(const BpfObject& bpf) const;

    void attach(); // throws Error if neither hook (see how()) is available
    std::string how() const { return tracepoint_ ? "tracepoint nvidia:nvidia_dev_xid" : "kprobe nv_report_error"; }

    void add(const xid_record& record);
    // Returns and removes reports, oldest first, and stops at the first that still waits for its line in the kernel
    // log. A report waits for its line for up to 500 ms. If `all` is true, reports do not wait.
    std::vector<XidReport> drain(uint64_t now_ns, bool all);

private:
    void choose_tracepoint();
    void read_log(uint64_t now_ns);

    bpf_object* object_;
    std::optional<Tracefs> tracefs_;
    std::optional<uint64_t> tracepoint_;
    struct Offsets {
        uint32_t device = 0, number = 0, text = 0;
    } offsets_;
    Link link_;
    Fd log_;
    std::deque<XidReport> reports_;
    std::deque<XidLogLine> lines_;
};

// Disables the programs for Xids.
void leave_out_xids(bpf_object* object);

} // namespace gpusnoop
