// SPDX-License-Identifier: Apache-2.0
#include "attach/tracefs.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/mount.h>
#include <new>
#include <set>
#include <sstream>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr std::string_view group = "gpusnoop";
constexpr size_t max_list = 64 << 20;

// 0 or -errno.
int write_to(int directory, const char* file, const std::string& text)
{
    Fd fd(openat(directory, file, O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!fd || ::write(fd.get(), text.data(), text.size()) < 0)
        return -errno;
    return 0;
}

std::string next_event_name()
{
    static unsigned last = 0; // names need only be different
    return fmt::format("p{}_{}", getpid(), ++last);
}

} // namespace

Tracefs::Tracefs()
{
    // fsopen() and friends are in glibc from 2.36 on, Debian 12's; the system calls are older (5.2).
    Fd context(static_cast<int>(syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC)));
    if (context && syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0)
        mount_ = Fd(static_cast<int>(syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0)));
    if (!mount_)
        throw Error(fmt::format("tracefs cannot be mounted: {}", errno_text(errno)),
                    "this way of attaching needs a kernel with CONFIG_UPROBE_EVENTS; try --attach perf");
}

LeftEvents remove_leftover_events(const Tracefs& tracefs)
{
    const Fd list(openat(tracefs.directory(), "uprobe_events", O_RDONLY | O_CLOEXEC));
    std::istringstream lines(list ? read_text(list, max_list).value_or("") : "");
    std::set<std::string> left, living;
    for (std::string line; std::getline(lines, line);) {
        // "p:gpusnoop/p4711_12 /proc/self/fd/9:0x1234": one line per place
        const std::string name = line.substr(std::min<size_t>(2, line.size()), line.find(' ') - 2);
        pid_t pid = 0;
        if (sscanf(name.c_str(), "gpusnoop/p%d_", &pid) == 1 && pid != getpid())
            (is_alive(pid) ? living : left).insert(name);
    }
    LeftEvents events{.of_living = static_cast<unsigned>(living.size())};
    for (const std::string& name : left) { // the kernel refuses where one is in use, by a run of another pid namespace
        const bool gone = write_to(tracefs.directory(), "uprobe_events", fmt::format("-:{}\n", name)) == 0;
        (gone ? events.removed : events.in_use)++;
    }
    return events;
}

UprobeEvent::UprobeEvent(const Tracefs& tracefs, const std::string& path, std::span<const uint64_t> offsets,
                         bool on_return)
    : tracefs_(tracefs), name_(next_event_name())
{
    // One line per write: a definition after the first one adds its place to the event (5.5, 60d53e2c3b75).
    for (uint64_t offset : offsets) {
        std::string line = fmt::format("{}:{}/{} {}:0x{:x}\n", on_return ? 'r' : 'p', group, name_, path, offset);
        if (int error = write_to(tracefs_.directory(), "uprobe_events", line)) {
            if (offset != offsets.front())
                remove();
            throw Error(fmt::format("a uprobe event at {}+0x{:x} was refused: {}", path, offset, errno_text(-error)));
        }
    }
    std::string file = fmt::format("events/{}/{}/id", group, name_);
    Fd fd(openat(tracefs_.directory(), file.c_str(), O_RDONLY | O_CLOEXEC));
    char text[32]{};
    if (!fd || ::read(fd.get(), text, sizeof(text) - 1) <= 0) {
        remove();
        throw Error(fmt::format("the id of uprobe event {} cannot be read: {}", name_, errno_text(errno)));
    }
    id_ = strtoull(text, nullptr, 10);
}

UprobeEvent::~UprobeEvent()
{
    remove();
}

void UprobeEvent::remove() noexcept
try {
    std::string line = fmt::format("-:{}/{}\n", group, name_);
    if (int error = write_to(tracefs_.directory(), "uprobe_events", line))
        warn(fmt::format("uprobe event {}/{} could not be removed: {}", group, name_, errno_text(-error)));
} catch (const std::bad_alloc&) {
    warn("a uprobe event could not be removed: there is not enough memory");
}

} // namespace gpusnoop
