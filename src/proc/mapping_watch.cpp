// SPDX-License-Identifier: Apache-2.0
#include "proc/mapping_watch.hpp"

#include "util/error.hpp"
#include "util/machine.hpp"

#include <bpf/libbpf.h>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr size_t data_bytes = 256 << 10; // a power of two of pages; a record is about 150 bytes

// In front of the data is a page of the kernel's.
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
    // the name follows, and at the end of the record, as of all, its time
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

MappingWatch::MappingWatch(Handlers handlers) : handlers_(std::move(handlers))
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
    // wakeup_events never wakes for these records; a watermark of one byte wakes for each.
    attributes.watermark = 1;
    attributes.wakeup_watermark = 1;
    int cpus = libbpf_num_possible_cpus();
    for (int cpu = 0; cpu < cpus; cpu++) {
        Ring ring;
        ring.fd = Fd(static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
        if (!ring.fd && errno == ENODEV)
            continue; // possible, but offline
        if (!ring.fd)
            throw Error("new processes cannot be watched: perf_event_open: " + errno_text(errno));
        ring.base = mmap(nullptr, mapping_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd.get(), 0);
        if (ring.base == MAP_FAILED)
            throw Error("new processes cannot be watched: no memory for the perf buffer: " + errno_text(errno));
        rings_.push_back(std::move(ring));
    }
}

MappingWatch::~MappingWatch()
{
    for (Ring& ring : rings_)
        munmap(ring.base, mapping_bytes());
}

std::vector<int> MappingWatch::descriptors() const
{
    std::vector<int> fds;
    for (const Ring& ring : rings_)
        fds.push_back(ring.fd.get());
    return fds;
}

void MappingWatch::drain()
{
    for (Ring& ring : rings_)
        drain(ring);
}

void MappingWatch::drain(Ring& ring)
{
    auto* page = static_cast<perf_event_mmap_page*>(ring.base);
    const uint8_t* data = static_cast<uint8_t*>(ring.base) + machine::page_size();
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = page->data_tail;
    while (tail < head) {
        // Records are 8-byte aligned, so the header never wraps; the rest may.
        perf_event_header header{};
        memcpy(&header, data + tail % data_bytes, sizeof(header));
        if (header.size < sizeof(header))
            break;
        scratch_.resize(header.size);
        size_t first = std::min<size_t>(header.size, data_bytes - tail % data_bytes);
        memcpy(scratch_.data(), data + tail % data_bytes, first);
        memcpy(scratch_.data() + first, data, header.size - first);
        tail += header.size;
        // Given back before the handler runs: it may take a while, and the kernel wants the room.
        __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
        hand_over(scratch_, handlers_);
    }
}

void MappingWatch::hand_over(std::span<const uint8_t> record, const Handlers& to)
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
        if (read_as(record, task) && task.pid == task.tid)
            to.on_exit(static_cast<pid_t>(task.pid));
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

} // namespace gpusnoop
