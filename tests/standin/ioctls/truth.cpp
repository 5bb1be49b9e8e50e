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

namespace json = workload::json;

struct Tally {
    uint64_t count = 0, duration_ns = 0, slept_ns = 0;
    bool timed = false;
};

std::mutex lock;
std::map<std::string, Tally> lines; // key: the line's fields without the totals
std::string path;

template<class T>
std::string number(const std::optional<T>& value)
{
    return value ? std::to_string(*value) : "null";
}

std::string head(const char* type, int pid, bool of_thread)
{
    char comm[16] = "";
    prctl(PR_GET_NAME, comm);
    std::string out = std::string("{\"type\":\"") + type + "\",\"pid\":" + std::to_string(pid);
    if (of_thread)
        out += ",\"tid\":" + std::to_string(pid == getpid() ? gettid() : pid) + ",\"comm\":" + json::quoted(comm);
    return out;
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
    return head("ioctl", pid, true) + ",\"device\":" + json::quoted(record.device) +
           ",\"request\":" + json::hex(record.request) + ",\"command\":" + std::to_string(record.command) +
           ",\"wrapped\":" + json::boolean(record.wrapped) + ",\"subject\":" + number(record.subject) +
           ",\"status\":" + number(record.status) + ",\"errno\":" + std::to_string(record.error) +
           ",\"bytes\":" + number(record.bytes) + ",\"virtual\":" + json::boolean(record.is_virtual) +
           ",\"unreadable\":" + json::boolean(record.unreadable) + ",\"parameters_unreadable\":" +
           (record.parameters_unreadable ? json::boolean(*record.parameters_unreadable) : "null") +
           ",\"killed\":" + json::boolean(record.killed);
}

std::string device_line(const char* type, const std::string& device, int error, bool driver)
{
    return head(type, getpid(), true) + ",\"device\":" + json::quoted(device) + ",\"errno\":" + std::to_string(error) +
           ",\"driver\":" + json::boolean(driver);
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
    count(device_line("mmap", device, error, driver) + json::field("bytes", bytes));
}

void record_xid(uint32_t xid, uint32_t pid, const std::string& name, const std::string& text)
{
    count("{\"type\":\"xid\",\"xid\":" + std::to_string(xid) + ",\"pid\":" + (pid ? std::to_string(pid) : "null") +
          ",\"name\":" + (pid ? json::quoted(name) : "null") + ",\"text\":" + json::quoted(text));
}

void forget_truth()
{
    lines.clear();
}

void write_truth()
{
    std::string out;
    for (const auto& [line, tally] : lines) {
        out += line + json::field("count", tally.count);
        if (tally.timed)
            out += json::field("duration_ns", tally.duration_ns) + json::field("slept_ns", tally.slept_ns);
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
