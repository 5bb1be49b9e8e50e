// SPDX-License-Identifier: Apache-2.0
#include "proc/mapping_watch.hpp"

#include "base/error.hpp"
#include "base/machine.hpp"
#include "base/text.hpp"
#include "proc/threads.hpp"

#include <algorithm>
#include <array>
#include <bpf/libbpf.h>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {

namespace {

constexpr size_t data_bytes = 256 << 10; // the number of pages must be a power of two; a record has about 150 bytes

// One page more than the data: the first page has the positions at which the kernel writes and the tool reads.
size_t mapping_bytes()
{
    return machine::page_size() + data_bytes;
}

struct Mmap2Record {
    perf_event_header header;
    uint32_t pid, tid;
    uint64_t address, length, page_offset;
    uint32_t major, minor;
    uint64_t inode, inode_generation;
    uint32_t protection, flags;
    // the path follows, zero-terminated
};

struct CommRecord {
    perf_event_header header;
    uint32_t pid, tid;
    // the name follows; the end of every record is the time of the event (PERF_SAMPLE_TIME)
};

struct TaskRecord {
    perf_event_header header;
    uint32_t pid, parent, tid, parent_tid;
};

template<class T>
bool read_as(std::span<const uint8_t> record, T& to)
{
    if (record.size() < sizeof(T))
        return false;
    memcpy(&to, record.data(), sizeof(T));
    return true;
}

} // namespace

MappingWatch::Ring::Ring(Fd event)
    : event_(std::move(event)),
      base_(mmap(nullptr, mapping_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, event_.get(), 0))
{
    if (base_ == MAP_FAILED)
        throw Error("cannot watch for new processes: no memory for the perf buffer: " + errno_text(errno));
}

MappingWatch::Ring::~Ring()
{
    munmap(base_, mapping_bytes());
}

MappingWatch::MappingWatch(Handlers handlers) : handlers_(std::move(handlers)), epoll_(epoll_create1(EPOLL_CLOEXEC))
{
    if (!epoll_)
        throw Error("cannot watch for new processes: " + errno_text(errno));
    if (hotplug_.descriptor() >= 0)
        add_to_epoll(hotplug_.descriptor());
    else
        warn(fmt::format(
            "cannot watch for CPUs that come online ({}): processes that load a GPU library on these CPUs go unnoticed",
            errno_text(errno)));
    watch_online_cpus();
}

MappingWatch::~MappingWatch() = default;

void MappingWatch::add_to_epoll(int descriptor)
{
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
        throw Error("cannot watch for new processes: " + errno_text(errno));
}

void MappingWatch::watch_online_cpus()
{
    const int cpus = libbpf_num_possible_cpus();
    for (int cpu = 0; cpu < cpus; cpu++)
        watch_cpu(cpu);
}

// Watches one CPU. If the CPU was watched before and went offline meanwhile, replaces its event, because the kernel has
// removed the old one (perf_event_exit_cpu() in kernel/events/core.c).
void MappingWatch::watch_cpu(int cpu)
{
    perf_event_attr attributes{};
    attributes.size = sizeof(attributes);
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_DUMMY;
    attributes.mmap = 1;
    attributes.mmap2 = 1;
    attributes.task = 1;
    attributes.comm = 1;
    attributes.comm_exec = 1;
    attributes.sample_id_all = 1;
    attributes.sample_type = PERF_SAMPLE_TIME;
    attributes.use_clockid = 1;
    attributes.clockid = CLOCK_MONOTONIC;
    // wakeup_events does not apply to these records. A watermark of one byte causes a wakeup for each record.
    attributes.watermark = 1;
    attributes.wakeup_watermark = 1;
    Fd event(static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!event && errno == ENODEV)
        return; // a possible CPU that is offline
    if (!event)
        throw Error("cannot watch for new processes: perf_event_open: " + errno_text(errno));
    if (const auto old = rings_.find(cpu); old != rings_.end()) {
        drain(old->second);
        rings_.erase(old);
    }
    const auto [added, is_new] = rings_.try_emplace(cpu, std::move(event));
    add_to_epoll(added->second.descriptor());
}

void MappingWatch::drain()
{
    for (auto& [cpu, ring] : rings_)
        drain(ring);
    const auto [cpus, lost] = hotplug_.drain();
    if (cpus.empty() && !lost)
        return;
    try {
        if (lost)
            watch_online_cpus();
        else
            std::ranges::for_each(cpus, [this](int cpu) { watch_cpu(cpu); });
        for (const int cpu : cpus)
            warn(fmt::format("CPU {} came online: watching it from now on", cpu));
    } catch (const Error& error) {
        warn(fmt::format(
            "a CPU came online, but processes that load a GPU library on it go unnoticed: {}; restart the tool",
            error.what()));
    }
    handlers_.lost(); // nothing was recorded on these CPUs until now, so everything must be scanned again
}

void MappingWatch::drain(Ring& ring)
{
    auto* page = static_cast<perf_event_mmap_page*>(ring.base());
    const uint8_t* data = static_cast<uint8_t*>(ring.base()) + machine::page_size();
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = page->data_tail;
    while (tail < head) {
        // Records are 8-byte aligned, so only the part after the header may wrap around.
        perf_event_header header{};
        memcpy(&header, data + tail % data_bytes, sizeof(header));
        if (header.size < sizeof(header))
            break;
        scratch_.resize(header.size);
        size_t first = std::min<size_t>(header.size, data_bytes - tail % data_bytes);
        memcpy(scratch_.data(), data + tail % data_bytes, first);
        memcpy(scratch_.data() + first, data, header.size - first);
        tail += header.size;
        // Frees the space before the handler runs, because handlers may be slow.
        __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
        dispatch(scratch_, handlers_);
    }
}

void MappingWatch::dispatch(std::span<const uint8_t> record, const Handlers& to)
{
    perf_event_header header{};
    if (!read_as(record, header))
        return;
    switch (header.type) {
    case PERF_RECORD_MMAP2: {
        Mmap2Record mapped{};
        if (!read_as(record, mapped) || mapped.inode == 0)
            return;
        const char* path = reinterpret_cast<const char*>(record.data()) + sizeof(mapped);
        to.mapped(static_cast<pid_t>(mapped.pid), {path, strnlen(path, record.size() - sizeof(mapped))},
                  makedev(mapped.major, mapped.minor), mapped.inode);
        break;
    }
    case PERF_RECORD_FORK: {
        TaskRecord task{};
        if (read_as(record, task) && task.pid != task.parent)
            to.forked(static_cast<pid_t>(task.pid), static_cast<pid_t>(task.parent));
        break;
    }
    case PERF_RECORD_EXIT: {
        TaskRecord task{};
        if (read_as(record, task))
            to.exited(static_cast<pid_t>(task.pid), static_cast<pid_t>(task.tid));
        break;
    }
    case PERF_RECORD_COMM: {
        CommRecord named{};
        uint64_t time_ns = 0;
        if (!read_as(record, named) || record.size() < sizeof(named) + sizeof(time_ns))
            return;
        const bool is_exec = header.misc & PERF_RECORD_MISC_COMM_EXEC;
        if (to.named) {
            const char* name = reinterpret_cast<const char*>(record.data()) + sizeof(named);
            to.named(static_cast<pid_t>(named.pid),
                     {name, strnlen(name, record.size() - sizeof(named) - sizeof(time_ns))}, is_exec);
        }
        if (!is_exec)
            return;
        memcpy(&time_ns, record.last(sizeof(time_ns)).data(), sizeof(time_ns));
        to.on_exec(static_cast<pid_t>(named.pid), time_ns);
        break;
    }
    case PERF_RECORD_LOST:
        to.lost();
        break;
    default:
        break;
    }
}

namespace {

constexpr uint32_t kernel_group = 1; // udev sends to group 2

Fd open_socket()
{
    Fd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = kernel_group;
    if (fd && bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
        return {};
    return fd;
}

} // namespace

CpuHotplug::CpuHotplug() : socket_(open_socket()) {}

CpuHotplug::Online CpuHotplug::drain()
{
    Online found;
    for (;;) {
        // Room for any uevent: the kernel limits its variables to 2048 bytes (UEVENT_BUFFER_SIZE), and puts a shorter
        // header before them.
        std::array<char, 4096> uevent;
        sockaddr_nl sender{};
        socklen_t length = sizeof(sender);
        const ssize_t size =
            recvfrom(socket_.get(), uevent.data(), uevent.size(), 0, reinterpret_cast<sockaddr*>(&sender), &length);
        if (size < 0 && errno == ENOBUFS) {
            found.lost = true;
            continue;
        }
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return found;
        if (sender.nl_pid != 0) // sent by another process, not by the kernel
            continue;
        if (const auto cpu = parse({uevent.data(), static_cast<size_t>(size)}))
            found.cpus.push_back(*cpu);
    }
}

std::optional<int> CpuHotplug::parse(std::string_view uevent)
{
    constexpr std::string_view beginning = "online@/devices/system/cpu/cpu";
    uevent = uevent.substr(0, uevent.find('\0'));
    if (!uevent.starts_with(beginning))
        return std::nullopt;
    uevent.remove_prefix(beginning.size());
    const auto cpu = parse_number<int>(uevent);
    return cpu && *cpu >= 0 ? cpu : std::nullopt;
}

// Remembers one running thread of the process and waits for the exit of that thread, instead of searching for running
// threads at every exit. No exit of a process is overlooked: the kernel marks a thread as exiting before it reports the
// exit (do_exit()). A remembered thread is not marked yet, so its exit will still be reported.
ProcessExits::Exit ProcessExits::thread_exited(pid_t pid, pid_t tid)
{
    const auto known = last_running_.find(pid);
    if (tid != pid && (known == last_running_.end() || known->second != tid))
        return Exit::thread;
    const auto running = running_thread(pid);
    if (running && running != pid) {
        const bool is_new = last_running_.insert_or_assign(pid, *running).second;
        return is_new ? Exit::main_thread : Exit::thread;
    }
    last_running_.erase(pid);
    return !running ? Exit::process : tid == pid ? Exit::replaced : Exit::thread;
}

bool ProcessExits::executed(pid_t pid)
{
    return last_running_.erase(pid) > 0;
}

std::set<pid_t> ProcessExits::drain_unreported()
{
    std::set<pid_t> exited;
    for (auto known = last_running_.begin(); known != last_running_.end();) {
        const auto running = running_thread(known->first);
        if (!running)
            exited.insert(known->first);
        if (running && running != known->first)
            (known++)->second = *running;
        else
            known = last_running_.erase(known);
    }
    return exited;
}

} // namespace gpusnoop
