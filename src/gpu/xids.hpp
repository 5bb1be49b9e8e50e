// SPDX-License-Identifier: Apache-2.0
// Errors of a GPU (Xids) as NVIDIA's driver reports them, with the process that the kernel's log names for each: the
// report itself knows none, and runs anywhere.
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

// "NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=python3, text" of the kernel's log. Parts after the number may be
// missing.
struct XidLogLine {
    std::string device; // "0000:3b:00"
    uint32_t xid = 0;
    std::optional<uint32_t> pid;
    std::string comm; // as the log has it; empty unknown
    std::string text;
    uint64_t read_ns = 0; // CLOCK_MONOTONIC
};

// A record of /dev/kmsg, "6,1234,567890,-;NVRM: Xid ..."; nullopt where it is about something else.
std::optional<XidLogLine> parse_xid(std::string_view record);

struct XidReport {
    uint32_t xid = 0;
    uint64_t time_ns = 0; // CLOCK_MONOTONIC
    std::string device;   // PCI address
    std::string text;
    std::optional<uint32_t> pid;
    std::string comm;
};

// Those of one process.
struct XidsOf {
    uint32_t last = 0;
    uint64_t count = 0;
};

class Xids {
public:
    // To be called between open and load: chooses the program.
    explicit Xids(bpf_object* object);

    // What the program is to know of the tracepoint's record.
    void configure(const BpfObject& bpf) const;

    void attach(); // throws Error where this kernel or this driver has no such hook
    std::string how() const { return tracepoint_ ? "tracepoint nvidia:nvidia_dev_xid" : "kprobe nv_report_error"; }

    void add(const xid_record& record);
    // Those whose process is known, or that the log has said nothing about for a while (or now, if that is all).
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

// Programs for Xids are not to be loaded.
void leave_out_xids(bpf_object* object);

} // namespace gpusnoop
