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
    return ",\"bytes\":" + or_null(d.bytes.has_value(), std::to_string(d.bytes.value_or(0))) +
           ",\"copies\":" + or_null(d.copies, std::to_string(d.copies)) +
           ",\"sizes\":" + or_null(!d.sizes.empty(), list(d.sizes)) +
           ",\"source\":" + or_null(!d.source.empty(), quoted(d.source)) +
           ",\"destination\":" + or_null(!d.destination.empty(), quoted(d.destination)) +
           ",\"direction\":" + or_null(!d.direction.empty(), quoted(d.direction)) +
           ",\"holding\":" + or_null(!d.holding.empty(), quoted(d.holding));
}

std::string timing(const Call& c, const Tally& tally)
{
    bool timed = c.synchronous.has_value();
    return std::string(",\"synchronous\":") + or_null(timed, boolean(c.synchronous.value_or(false))) +
           ",\"duration_ns\":" + or_null(timed, std::to_string(tally.duration_ns)) +
           ",\"slept_ns\":" + or_null(timed, std::to_string(tally.slept_ns));
}

std::string line(const Call& c, const Tally& tally)
{
    bool kernel = c.kind == "kernel", setup = c.kind == "setup";
    return "{\"type\":\"call\",\"pid\":" + std::to_string(getpid()) + ",\"tid\":" + std::to_string(c.tid) +
           ",\"comm\":" + quoted(c.comm) + ",\"layer\":" + quoted(c.layer) + ",\"function\":" + quoted(c.function) +
           ",\"kind\":" + quoted(c.kind) + ",\"kernel\":" + or_null(!c.kernel.empty(), quoted(c.kernel)) +
           ",\"demangled\":" + or_null(!c.kernel.empty(), quoted(demangled(c.kernel))) +
           ",\"handle\":" + hex(c.handle) + ",\"grid\":" + or_null(kernel, triple(c.grid)) +
           ",\"block\":" + or_null(kernel, triple(c.block)) + ",\"smem\":" + or_null(kernel, std::to_string(c.shared)) +
           ",\"stream\":" + or_null(!setup, hex(c.stream)) +
           ",\"device\":" + or_null(c.device >= 0, std::to_string(c.device)) +
           ",\"result\":" + std::to_string(c.result) + ",\"count\":" + std::to_string(tally.count) +
           ",\"recorded\":" + boolean(c.recorded) + ",\"nested\":" + boolean(c.nested) +
           ",\"implied\":" + boolean(c.implied) + ",\"kernels\":" + std::to_string(c.kernels) +
           data(c.data.value_or(Data{})) + timing(c, tally) + "}\n";
}

// The stand-in driver's own counters, so that readers can check the truth against them.
std::string driver_counts()
{
    uint64_t now[classes] = {};
    if (!driver_counters(now, classes))
        return "null";
    auto since = [&](standin::Class c) {
        auto i = static_cast<int>(c);
        return std::to_string(now[i] - counted_before[i]);
    };
    using enum standin::Class;
    return "{\"launch\":" + since(launch) + ",\"recorded\":" + since(recorded) + ",\"graph\":" + since(graph_launch) +
           ",\"host\":" + since(host) + ",\"copy\":" + since(copy) + ",\"alloc\":" + since(alloc) +
           ",\"free\":" + since(free) + ",\"sync\":" + since(sync) + ",\"graph_call\":" + since(graph_call) + "}";
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
    return "{\"type\":\"process\",\"pid\":" + std::to_string(getpid()) + ",\"parent\":" + std::to_string(getppid()) +
           ",\"comm\":" + quoted(thread_name()) + ",\"program\":" + quoted(program()) +
           ",\"exec\":" + boolean(appended) + ",\"driver_counts\":" + driver_counts() + "}\n";
}

std::string bytes(uint64_t n)
{
    return ",\"bytes\":" + std::to_string(n);
}

// Memory still held by this process, memory released with contexts, and the peak, as counted by the driver.
std::string holdings()
{
    constexpr auto n = static_cast<int>(standin::Holding::count_);
    standin::HoldingTally held[n] = {}, released[n] = {};
    uint64_t peak = 0;
    if (!driver_holdings(held, released, &peak))
        return {};
    std::string out = summary("peak", bytes(peak));
    for (auto [type, tallies] : {std::pair("memory", held), {"released", released}})
        for (int i = 0; i < n; i++)
            if (const auto& t = tallies[i]; t.count)
                out += summary(type, ",\"holding\":" + quoted(standin::holding_names[i]) + bytes(t.bytes) +
                                         ",\"count\":" + std::to_string(t.count));
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
    return "{\"type\":\"" + std::string(type) + "\",\"pid\":" + std::to_string(getpid()) +
           ",\"exec\":" + boolean(appended) + fields + "}\n";
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
    forget_driver_holdings();
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
