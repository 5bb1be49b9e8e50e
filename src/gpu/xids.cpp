// SPDX-License-Identifier: Apache-2.0
#include "gpu/xids.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <bpf/libbpf.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr const char* tracepoint = "nvidia/nvidia_dev_xid"; // exists since driver 575.51.02
constexpr uint64_t log_patience_ns = 500'000'000;
constexpr uint64_t log_memory_ns = 3'000'000'000;
constexpr size_t lines_max = 256; // maximum number of log lines that are kept until the tracepoint reports the same
                                  // error

// Returns the offset of a field, from a line such as "field:u32 error_code;\toffset:12;\tsize:4;" in a tracepoint's
// format.
std::optional<uint32_t> offset_of(std::string_view format, std::string_view field)
{
    const std::string before = fmt::format(" {};\toffset:", field);
    const size_t at = format.find(before);
    if (at == std::string_view::npos)
        return std::nullopt;
    const std::string_view rest = format.substr(at + before.size());
    return parse_number<uint32_t>(rest.substr(0, rest.find(';')));
}

// Removes the text up to the next comma, and the comma, and returns the text.
std::string_view next_part(std::string_view& rest)
{
    const size_t comma = rest.find(", ");
    const std::string_view part = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 2);
    return part;
}

// Compares the kernel's "0000:3b:00.0" with the log's "0000:3b:00" or "0000:3b:00 GPU-I:05".
bool same_device(std::string_view address, std::string_view in_log)
{
    const std::string_view log = in_log.substr(0, in_log.find(' '));
    return !log.empty() && (address.starts_with(log) || address.empty());
}

} // namespace

std::optional<XidLogLine> parse_xid(std::string_view record)
{
    constexpr std::string_view begin = "NVRM: Xid (PCI:";
    const size_t at = record.find(begin);
    if (at == std::string_view::npos)
        return std::nullopt;
    std::string_view rest = record.substr(at + begin.size());
    rest = rest.substr(0, rest.find('\n')); // /dev/kmsg appends lines with the record's properties
    const size_t close = rest.find("): ");
    if (close == std::string_view::npos)
        return std::nullopt;
    XidLogLine line;
    line.device = rest.substr(0, close);
    rest = rest.substr(close + 3);
    const auto number = parse_number<uint32_t>(next_part(rest));
    if (!number)
        return std::nullopt;
    line.xid = *number;
    // If the driver does not know the pid, it writes pid='<unknown>'. "name=" is present only after a pid.
    if (rest.starts_with("pid=")) {
        line.pid = parse_number<uint32_t>(next_part(rest).substr(4));
        if (rest.starts_with("name="))
            line.comm = next_part(rest).substr(5);
    }
    line.text = rest;
    return line;
}

Xids::Xids(bpf_object* object) : object_(object)
{
    choose_tracepoint();
    for (const auto& [name, wanted] :
         {std::pair{"xid_event", tracepoint_.has_value()}, std::pair{"xid_report", !tracepoint_.has_value()}})
        bpf_program__set_autoload(bpf_object__find_program_by_name(object, name), wanted);
    log_ = Fd(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (log_)
        lseek(log_.get(), 0, SEEK_END); // only new records
}

void Xids::choose_tracepoint()
{
    try {
        tracefs_.emplace();
    } catch (const Error&) {
        return; // no tracepoints
    }
    const Fd file(
        openat(tracefs_->directory(), fmt::format("events/{}/format", tracepoint).c_str(), O_RDONLY | O_CLOEXEC));
    const auto format = file ? read_text(file, 64 << 10) : std::nullopt;
    if (!format)
        return;
    const auto device = offset_of(*format, "dev"), number = offset_of(*format, "error_code"),
               text = offset_of(*format, "msg");
    if (!device || !number || !text)
        return;
    offsets_ = {*device, *number, *text};
    tracepoint_ = tracepoint_id(*tracefs_, tracepoint);
}

void Xids::configure(const BpfObject& bpf) const
{
    bpf.set("xid_device_offset", offsets_.device);
    bpf.set("xid_number_offset", offsets_.number);
    bpf.set("xid_text_offset", offsets_.text);
}

void Xids::attach()
{
    if (tracepoint_) {
        link_ = attach_tracepoint(bpf_object__find_program_by_name(object_, "xid_event"), *tracepoint_);
    } else {
        link_ = own_link(bpf_program__attach_kprobe(bpf_object__find_program_by_name(object_, "xid_report"), false,
                                                    "nv_report_error"));
    }
    if (!link_)
        throw Error(
            "cannot trace Xids: neither the tracepoint nvidia:nvidia_dev_xid (drivers from 575 on) nor a kprobe on "
            "nv_report_error is available",
            "load NVIDIA's driver first; without kprobes in the kernel, look for 'NVRM: Xid' in the kernel log");
    if (!log_)
        warn("cannot read the kernel log (/dev/kmsg): the process of an Xid stays unknown");
}

void Xids::add(const xid_record& record)
{
    auto text = [](const char* from, size_t size) { return std::string(from, strnlen(from, size)); };
    reports_.push_back({.xid = record.xid,
                        .time_ns = record.time_ns,
                        .device = text(record.device, sizeof(record.device)),
                        .text = text(record.text, sizeof(record.text)),
                        .pid = std::nullopt,
                        .comm = {}});
}

void Xids::read_log(uint64_t now_ns)
{
    // Drop old lines: a line whose report was lost must not be matched with a later report.
    std::erase_if(lines_, [&](const XidLogLine& line) { return line.read_ns + log_memory_ns < now_ns; });
    char record[8192]; // larger than PRINTKRB_RECORD_MAX
    for (ssize_t size = 0; log_ && (size = read(log_.get(), record, sizeof(record))) != 0;) {
        if (size < 0 && errno == EPIPE)
            continue; // records were overwritten; read the next one
        if (size < 0)
            return;
        if (auto line = parse_xid({record, static_cast<size_t>(size)})) {
            line->read_ns = now_ns;
            lines_.push_back(std::move(*line));
        }
        if (lines_.size() > lines_max)
            lines_.pop_front();
    }
}

std::vector<XidReport> Xids::drain(uint64_t now_ns, bool all)
{
    read_log(now_ns);
    std::vector<XidReport> taken;
    while (!reports_.empty()) {
        XidReport& report = reports_.front();
        const auto line = std::ranges::find_if(
            lines_, [&](const XidLogLine& l) { return l.xid == report.xid && same_device(report.device, l.device); });
        if (line != lines_.end()) {
            report.pid = line->pid;
            report.comm = line->comm;
            if (report.text.empty())
                report.text = line->text;
            lines_.erase(line);
        } else if (!all && report.time_ns + log_patience_ns > now_ns) {
            break;
        }
        taken.push_back(std::move(report));
        reports_.pop_front();
    }
    return taken;
}

void leave_out_xids(bpf_object* object)
{
    for (const char* name : {"xid_event", "xid_report"})
        bpf_program__set_autoload(bpf_object__find_program_by_name(object, name), false);
}

} // namespace gpusnoop
