// SPDX-License-Identifier: Apache-2.0
#include "attach/tier.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/machine.hpp"
#include "base/text.hpp"
#include "proc/process.hpp"
#include "reader/helper.hpp"
#include "reader/message.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <iterator>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <new>
#include <set>
#include <sstream>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpusnoop {

namespace {

// Loads an empty BPF program, with which try_link() creates a link.
Fd load_empty_program(int attach_type)
{
    const bpf_insn code[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
    };
    LIBBPF_OPTS(bpf_prog_load_opts, options);
    options.expected_attach_type = static_cast<bpf_attach_type>(attach_type);
    return Fd(bpf_prog_load(BPF_PROG_TYPE_KPROBE, "gpusnoop_try", "GPL", code, std::size(code), &options));
}

// Tries to create a link on a directory. Returns the link or -errno. The kernel checks the file last, so the error
// shows whether the other parameters are supported.
int try_link(int attach_type, int pid)
{
    Fd program = load_empty_program(attach_type);
    if (!program)
        return -errno;
    const uint64_t offset = 0;
    int link = create_link({.program = program.get(),
                            .attach_type = attach_type,
                            .path = "/",
                            .offsets = &offset,
                            .count = 1,
                            .pid = pid});
    if (link >= 0)
        ::close(link);
    return link;
}

// The kernel returns EBADF, because "/" is not a regular file, or EINVAL if it does not know the attach type.
bool supports(int attach_type)
{
    return try_link(attach_type, 0) == -EBADF;
}

using machine::uprobe_return_call;

// Makes uretprobe(), the system call that return probes use, in a child process. filtered: the child first installs a
// seccomp filter that refuses this call. Returns the errno of the call, 0 if it succeeded, or -1 if it killed the
// child.
int call_in_child(bool filtered)
{
    if (!uprobe_return_call)
        return ENOSYS;
    Helper child([filtered](Helper::Task& task) {
        // The kernel sends SIGILL if this system call does not come from the kernel's own return trampoline.
        signal(SIGILL, SIG_DFL);
        signal(SIGSYS, SIG_DFL);
        sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uprobe_return_call, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        sock_fprog program{.len = std::size(filter), .filter = filter};
        const bool is_refused = filtered && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
                                             prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
        task.connection.send(message_of(!is_refused && syscall(uprobe_return_call) < 0 ? errno : 0));
    });
    if (child.error()) // unsafe to continue, because return probes might kill a target
        throw Error("cannot check whether return probes are safe: cannot start a child process: " +
                        errno_text(child.error()),
                    "raise the limit of tasks (pids.max of the cgroup, ulimit -u), or trace one process (-p)");
    const auto answer = child.connection().receive();
    return answer ? read_message<int>(answer->bytes).value_or(-1) : -1;
}

} // namespace

std::string_view tier_name(Tier tier)
{
    return tier_names[static_cast<size_t>(tier)];
}

Tier tier_from_name(std::string_view name)
{
    for (size_t i = 0; i < std::size(tier_names); i++)
        if (tier_names[i] == name)
            return static_cast<Tier>(i);
    throw Error(fmt::format("unknown way of attaching: '{}'", name), "choose session, multi, tracefs or perf");
}

int create_link(const MultiLink& link)
{
    // struct link_create of union bpf_attr as of 6.6 (89ae89f53d20), which older headers lack.
    struct {
        uint32_t program;
        uint32_t target;
        uint32_t attach_type;
        uint32_t flags;
        uint64_t path;
        uint64_t offsets;
        uint64_t ref_ctr_offsets;
        uint64_t cookies;
        uint32_t count;
        uint32_t multi_flags;
        uint32_t pid;
        uint32_t padding;
    } attributes{};
    attributes.program = static_cast<uint32_t>(link.program);
    attributes.attach_type = static_cast<uint32_t>(link.attach_type);
    attributes.path = reinterpret_cast<uint64_t>(link.path);
    attributes.offsets = reinterpret_cast<uint64_t>(link.offsets);
    attributes.cookies = reinterpret_cast<uint64_t>(link.cookies);
    attributes.count = link.count;
    attributes.multi_flags = link.on_return ? 1 : 0; // BPF_F_UPROBE_MULTI_RETURN
    attributes.pid = static_cast<uint32_t>(link.pid);
    long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes));
    return fd < 0 ? -errno : static_cast<int>(fd);
}

Tier best_tier()
{
    if (supports(uprobe_session_attach_type) && supports(uprobe_multi_attach_type))
        return Tier::session;
    if (supports(uprobe_multi_attach_type))
        return Tier::multi;
    struct stat mount_point {};
    if (stat("/sys/kernel/tracing", &mount_point) == 0)
        return Tier::tracefs;
    return Tier::perf;
}

bool multi_filters_processes()
{
    // Kernels that filter by process refuse a negative pid (EINVAL) before they check the file. Older ones check the
    // file first (EBADF). libbpf uses the same test.
    return try_link(uprobe_multi_attach_type, -1) == -EINVAL;
}

bool return_probes_break_seccomp()
{
    // If the unfiltered call fails with ENOSYS, return probes use no system call on this kernel. If the filtered call
    // fails with EDOM, the filter has refused it, so the seccomp filters of other processes may refuse it, too.
    return call_in_child(false) != ENOSYS && call_in_child(true) == EDOM;
}

namespace {

constexpr std::string_view group = "gpusnoop";
constexpr size_t max_list = 64 << 20;

// Returns 0 or -errno.
int write_to(int directory, const char* file, const std::string& text)
{
    Fd fd(openat(directory, file, O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!fd || ::write(fd.get(), text.data(), text.size()) < 0)
        return -errno;
    return 0;
}

std::string next_event_name()
{
    static unsigned last = 0;
    return fmt::format("p{}_{}", getpid(), ++last);
}

} // namespace

Tracefs::Tracefs()
{
    // Uses the system calls (Linux 5.2), because glibc has wrappers for them only since 2.36 (Debian 12).
    Fd context(static_cast<int>(syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC)));
    if (context && syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0)
        mount_ = Fd(static_cast<int>(syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0)));
    if (!mount_)
        throw Error(fmt::format("cannot mount tracefs: {}", errno_text(errno)),
                    "this way of attaching needs a kernel with CONFIG_UPROBE_EVENTS; try --attach perf");
}

LeftoverEvents remove_leftover_events(const Tracefs& tracefs)
{
    const Fd list(openat(tracefs.directory(), "uprobe_events", O_RDONLY | O_CLOEXEC));
    std::istringstream lines(list ? read_text(list, max_list).value_or("") : "");
    std::set<std::string> leftover, running;
    for (std::string line; std::getline(lines, line);) {
        // "p:gpusnoop/p4711_12 /proc/self/fd/9:0x1234": one line per place
        const std::string name = line.substr(std::min<size_t>(2, line.size()), line.find(' ') - 2);
        pid_t pid = 0;
        if (sscanf(name.c_str(), "gpusnoop/p%d_", &pid) == 1 && pid != getpid())
            (is_alive(pid) ? running : leftover).insert(name);
    }
    LeftoverEvents events{.of_running = static_cast<unsigned>(running.size())};
    for (const std::string& name : leftover) { // the removal fails if a run in another pid namespace uses the event
        const bool removed = write_to(tracefs.directory(), "uprobe_events", fmt::format("-:{}\n", name)) == 0;
        (removed ? events.removed : events.in_use)++;
    }
    return events;
}

std::optional<uint64_t> tracepoint_id(const Tracefs& tracefs, const std::string& name)
{
    const Fd file(openat(tracefs.directory(), fmt::format("events/{}/id", name).c_str(), O_RDONLY | O_CLOEXEC));
    const auto text = file ? read_text(file, 64) : std::nullopt;
    return text ? leading_number<uint64_t>(*text) : std::nullopt;
}

UprobeEvent::UprobeEvent(const Tracefs& tracefs, const std::string& path, std::span<const uint64_t> offsets,
                         bool on_return)
    : tracefs_(tracefs), name_(next_event_name())
{
    // Each write has one line, with one offset in the file. Every line after the first adds its offset to the same
    // event (5.5, 60d53e2c3b75).
    for (uint64_t offset : offsets) {
        std::string line = fmt::format("{}:{}/{} {}:0x{:x}\n", on_return ? 'r' : 'p', group, name_, path, offset);
        if (int error = write_to(tracefs_.directory(), "uprobe_events", line)) {
            if (offset != offsets.front())
                remove();
            throw Error(
                fmt::format("the kernel refused a uprobe event at {}+0x{:x}: {}", path, offset, errno_text(-error)));
        }
    }
    const auto id = tracepoint_id(tracefs_, fmt::format("{}/{}", group, name_));
    if (!id) {
        remove();
        throw Error(fmt::format("cannot read the id of uprobe event {}: {}", name_, errno_text(errno)));
    }
    id_ = *id;
}

UprobeEvent::~UprobeEvent()
{
    remove();
}

void UprobeEvent::remove() noexcept
try {
    std::string line = fmt::format("-:{}/{}\n", group, name_);
    if (int error = write_to(tracefs_.directory(), "uprobe_events", line))
        warn(fmt::format("cannot remove uprobe event {}/{}: {}", group, name_, errno_text(-error)));
} catch (const std::bad_alloc&) {
    warn("cannot remove a uprobe event: out of memory");
}

} // namespace gpusnoop
