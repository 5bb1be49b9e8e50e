// SPDX-License-Identifier: Apache-2.0
#include "truth.hpp"

#include "../abi_allocation.hpp"
#include "graph_truth.hpp"
#include "json.hpp"
#include "script.hpp"
#include "symbols.hpp"

#include <cxxabi.h>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/prctl.h>
#include <unistd.h>

namespace workload {

using namespace json;

namespace {

std::string path;
bool appended; // true if another workload started this program by exec
std::mutex lock;
std::map<Call, Tally> calls;

constexpr int classes = static_cast<int>(standin::Class::count_);
uint64_t counted_before[classes]; // the driver's counters when this process was forked

std::string demangled(const std::string& name)
{
    int status = 0;
    char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    std::string out = text ? text : name;
    free(text);
    return out;
}

std::string data(const Data& d)
{
    return field("bytes", d.bytes) + field_if(d.copies, "copies", d.copies) +
           field_if(!d.sizes.empty(), "sizes", d.sizes) + field("source", OrNull{d.source}) +
           field("destination", OrNull{d.destination}) + field("direction", OrNull{d.direction}) +
           field("holding", OrNull{d.holding});
}

std::string line(const Call& c, const Tally& tally)
{
    bool kernel = c.kind == "kernel", setup = c.kind == "setup", timed = c.synchronous.has_value();
    return "{\"type\":\"call\"" + field("pid", getpid()) + field("tid", c.tid) + field("comm", c.comm) +
           field("layer", c.layer) + field("function", c.function) + field("kind", c.kind) +
           field("kernel", OrNull{c.kernel}) + field("demangled", OrNull{demangled(c.kernel)}) +
           field("handle", Hex{c.handle}) + field_if(kernel, "grid", c.grid) + field_if(kernel, "block", c.block) +
           field_if(kernel, "smem", c.shared) + field_if(!setup, "stream", Hex{c.stream}) +
           field_if(c.device >= 0, "device", c.device) + field("result", c.result) + field("count", tally.count) +
           field("recorded", c.recorded) + field("nested", c.nested) + field("implied", c.implied) +
           field("kernels", c.kernels) + data(c.data.value_or(Data{})) + field("synchronous", c.synchronous) +
           field_if(timed, "duration_ns", tally.duration_ns) + field_if(timed, "slept_ns", tally.slept_ns) + "}\n";
}

// The stand-in driver's own counters, so that readers can check the truth against them.
std::string driver_counts()
{
    constexpr const char* names[] = {"launch", "recorded", "graph", "host",      "alloc",
                                     "free",   "copy",     "sync",  "graph_call"};
    static_assert(std::size(names) == classes);
    uint64_t now[classes] = {};
    if (!driver_counters(now, classes))
        return "null";
    std::string out;
    for (int i = 0; i < classes; i++)
        out += field(names[i], now[i] - counted_before[i]);
    return "{" + out.substr(1) + "}";
}

std::string program()
{
    char target[4096] = {};
    ssize_t n = readlink("/proc/self/exe", target, sizeof target - 1);
    std::string file(target, n > 0 ? n : 0);
    return file.substr(file.rfind('/') + 1);
}

std::string process_line()
{
    return "{\"type\":\"process\"" + field("pid", getpid()) + field("parent", getppid()) +
           field("comm", thread_name()) + field("program", program()) + field("exec", appended) +
           ",\"driver_counts\":" + driver_counts() + "}\n";
}

// Memory still held by this process, memory released with contexts, and the peak, as counted by the driver.
std::string holdings()
{
    constexpr auto n = static_cast<int>(standin::Holding::count_);
    standin::HoldingTally held[n] = {}, released[n] = {};
    uint64_t peak = 0;
    if (!driver_holdings(held, released, &peak))
        return {};
    std::string out = summary("peak", field("bytes", peak));
    for (auto [type, tallies] : {std::pair("memory", held), {"released", released}})
        for (int i = 0; i < n; i++)
            if (const auto& t = tallies[i]; t.count)
                out += summary(type, field("holding", std::string(standin::holding_names[i])) +
                                         field("bytes", t.bytes) + field("count", t.count));
    return out;
}

} // namespace

std::string thread_name()
{
    char name[17] = {};
    prctl(PR_GET_NAME, name);
    return name;
}

std::string summary(const char* type, const std::string& fields)
{
    return "{\"type\":\"" + std::string(type) + "\"" + field("pid", getpid()) + field("exec", appended) + fields +
           "}\n";
}

void open_truth(const std::string& file, bool append)
{
    path = file;
    appended = append;
    if (path.empty() || append)
        return;
    int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        fail("cannot write the truth to " + path);
    close(fd);
}

const std::string& truth_path()
{
    return path;
}

void add(Call call, const Tally& tally)
{
    if (!tally.count)
        return;
    call.tid = gettid();
    call.comm = thread_name();
    std::lock_guard hold(lock);
    calls[std::move(call)] += tally;
}

void forget()
{
    calls.clear();
    forget_graphs();
    appended = false;
    driver_counters(counted_before, classes);
    forget_driver_state();
}

void write_truth()
{
    if (path.empty())
        return;
    std::string text = process_line();
    for (const auto& [call, tally] : calls)
        text += line(call, tally);
    text += holdings() + graph_lines();
    // A single write with O_APPEND, so that lines of several processes do not mix.
    int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        fail("cannot write the truth to " + path);
    close(fd);
}

} // namespace workload
