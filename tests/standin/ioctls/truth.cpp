// SPDX-License-Identifier: Apache-2.0
#include "truth.hpp"

#include "../workload/json.hpp"
#include "../workload/script.hpp"

#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/prctl.h>
#include <unistd.h>

namespace ioctls {
namespace {

using namespace workload::json;

struct Tally {
    uint64_t count = 0, duration_ns = 0, slept_ns = 0;
    bool timed = false;
};

std::mutex lock;
std::map<std::string, Tally> lines; // key: the line's fields without the totals
std::string path;

std::string head(const char* type, int pid)
{
    char comm[16] = "";
    prctl(PR_GET_NAME, comm);
    return std::string("{\"type\":\"") + type + "\"" + field("pid", pid) +
           field("tid", pid == getpid() ? gettid() : pid) + field("comm", std::string(comm));
}

void count(const std::string& line, uint64_t duration_ns = 0, uint64_t slept_ns = 0, bool timed = false)
{
    std::lock_guard guard(lock);
    Tally& tally = lines[line];
    tally.count++;
    tally.duration_ns += duration_ns;
    tally.slept_ns += slept_ns;
    tally.timed = timed;
}

std::string line_of(const CallRecord& record, int pid)
{
    return head("ioctl", pid) + field("device", record.device) + field("request", Hex{record.request}) +
           field("command", record.command) + field("wrapped", record.wrapped) + field("subject", record.subject) +
           field("status", record.status) + field("errno", record.error) + field("bytes", record.bytes) +
           field("virtual", record.is_virtual) + field("unreadable", record.unreadable) +
           field("parameters_unreadable", record.parameters_unreadable) + field("killed", record.killed);
}

std::string device_line(const char* type, const std::string& device, int error, bool driver)
{
    return head(type, getpid()) + field("device", device) + field("errno", error) + field("driver", driver);
}

} // namespace

void open_truth(const std::string& truth_path)
{
    path = truth_path;
    int fd = path.empty() ? -1 : open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 && !path.empty())
        workload::fail("cannot write " + path);
    if (fd >= 0)
        close(fd);
}

void record_call(const CallRecord& record, uint64_t duration_ns, uint64_t slept_ns)
{
    count(line_of(record, getpid()), duration_ns, slept_ns, true);
}

void record_killed(const CallRecord& record, int pid)
{
    count(line_of(record, pid), 0, 0, true);
}

void record_file(const char* type, const std::string& device, int error, bool driver)
{
    count(device_line(type, device, error, driver));
}

void record_mapping(const std::string& device, uint64_t bytes, int error, bool driver)
{
    count(device_line("mmap", device, error, driver) + field("bytes", bytes));
}

void record_xid(uint32_t xid, uint32_t pid, const std::string& name, const std::string& text)
{
    count("{\"type\":\"xid\"" + field("xid", xid) + field_if(pid, "pid", pid) + field_if(pid, "name", name) +
          field("text", text));
}

void forget_truth()
{
    lines.clear();
}

void write_truth()
{
    std::string out;
    for (const auto& [line, tally] : lines) {
        out += line + field("count", tally.count);
        if (tally.timed)
            out += field("duration_ns", tally.duration_ns) + field("slept_ns", tally.slept_ns);
        out += "}\n";
    }
    if (path.empty())
        return;
    int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    bool whole = fd >= 0 && write(fd, out.data(), out.size()) == static_cast<ssize_t>(out.size());
    if (!whole)
        workload::fail("cannot write " + path);
    close(fd);
}

} // namespace ioctls
