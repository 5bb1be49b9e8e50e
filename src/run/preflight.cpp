// SPDX-License-Identifier: Apache-2.0
#include "run/preflight.hpp"

#include "attach/refusal.hpp"
#include "attach/tier.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/privileges.hpp"
#include "names/scan_cache.hpp"

#include <bit>
#include <bpf/libbpf.h>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {

namespace {

std::string first_line(const char* path)
{
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

// Capabilities that suffice without CAP_SYS_ADMIN, in an unprivileged container. CAP_BPF and CAP_PERFMON are needed for
// probes by uprobe_multi (6.6), CAP_SYS_PTRACE to read other processes' mappings, and CAP_SETUID and CAP_SETGID for
// helpers with user ids of their own.
constexpr std::pair<int, std::string_view> without_sys_admin[] = {
    {CAP_BPF, "CAP_BPF"},       {CAP_PERFMON, "CAP_PERFMON"}, {CAP_SYS_PTRACE, "CAP_SYS_PTRACE"},
    {CAP_SETUID, "CAP_SETUID"}, {CAP_SETGID, "CAP_SETGID"},
};

void check_capabilities()
{
    if (has_capability(CAP_SYS_ADMIN))
        return;
    if (!has_capability(CAP_BPF) && !has_capability(CAP_PERFMON))
        throw Error("tracing other processes needs root (CAP_SYS_ADMIN), and you are an ordinary user",
                    "run it with sudo");
    for (const auto& [capability, name] : without_sys_admin)
        if (!has_capability(capability))
            throw Error(fmt::format("without CAP_SYS_ADMIN, tracing other processes needs {}", name),
                        "add it to the container's capabilities (deploy/kubernetes lists all that are needed)");
}

} // namespace

void preflight(bool confidential)
{
    check_capabilities();
    // Root of a user namespace has capabilities in that namespace only.
    std::istringstream map(first_line("/proc/self/uid_map"));
    uint64_t inside = 0, outside = 0, count = 0;
    if (map >> inside >> outside >> count && count != UINT32_MAX)
        throw Error("this is the root of a user namespace (a rootless container), which may not trace the host",
                    "run it as root on the host");
    if (access("/sys/kernel/btf/vmlinux", R_OK))
        throw Error("this kernel has no BTF (/sys/kernel/btf/vmlinux): " + errno_text(errno),
                    "use a kernel built with CONFIG_DEBUG_INFO_BTF=y, like that of every current distribution");
    // BPF cookies exist since 5.15 (82e6b1eee6a8), and task storage since 5.11 (4cf1bc1f1045). Checked here, because
    // the kernel would refuse maps and programs without naming the reason.
    if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie, nullptr) == 0)
        throw Error(fmt::format("this kernel ({}) is too old: it has no cookies for probes", kernel_release()),
                    "Linux 5.15 or newer is needed");
    // In confidentiality mode, only the tiers `session` and `multi` are accepted, so Linux 6.6 is needed. The tier
    // `tracefs` cannot work, because tracefs is then empty. Before Linux 6.2, BPF programs have no permitted way to
    // read kernel memory.
    if (confidential && best_tier() > Tier::multi)
        throw Error(fmt::format("this kernel ({}) is locked down in confidentiality mode, and is too old to be traced "
                                "in that mode",
                                kernel_release()),
                    "Linux 6.6 or newer is needed; or boot with lockdown=integrity or without lockdown "
                    "(see man 7 kernel_lockdown)");
    // The initial pid namespace has a fixed inode number (PROC_PID_INIT_INO in include/linux/proc_ns.h).
    constexpr ino_t initial_pid_namespace = 0xEFFFFFFC;
    struct stat st {};
    if (stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != initial_pid_namespace)
        throw Error("this container has its own pid namespace, and the kernel reports the host's process ids",
                    "run it on the host, or in a container with the host's pid namespace (--pid=host, hostPID: true)");
}

void drop_capabilities()
{
    // Needed for tracing, for reading /proc and the kernel log, for saving cudatop's files as the user who ran sudo,
    // for raising limits (descriptors, memory for perf events), for helpers with user ids of their own, and for file
    // leases on probed files.
    constexpr int needed[] = {
        CAP_SYS_ADMIN,       CAP_BPF,    CAP_PERFMON,      CAP_SYS_PTRACE,   CAP_CHECKPOINT_RESTORE,
        CAP_DAC_READ_SEARCH, CAP_SYSLOG, CAP_DAC_OVERRIDE, CAP_SYS_RESOURCE, CAP_IPC_LOCK,
        CAP_SETUID,          CAP_SETGID, CAP_KILL,         CAP_LEASE};
    keep_capabilities(needed); // if this fails, the run continues with more capabilities than needed
}

namespace {

void need(size_t descriptors)
{
    const size_t limit = descriptor_limit();
    if (descriptors > limit)
        throw Error(fmt::format("this process is limited to {} open files, but needs at least {}", limit, descriptors),
                    fmt::format("raise the limit: ulimit -n {}, or LimitNOFILE= of a systemd service",
                                2 * std::bit_ceil(descriptors)));
}

} // namespace

// Opens a placeholder for each closed stream. O_PATH makes reads and writes fail with EBADF, as on a closed descriptor.
void hold_closed_streams()
{
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/", O_PATH); // returns the lowest free descriptor, which is this one
}

void raise_descriptor_limit()
{
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    constexpr size_t least = 32; // number needed during start-up for /proc, BTF and feature probes
    need(least);
}

// Each map and program of the object needs a descriptor. The number of descriptors that are open now is not added: with
// some versions of libbpf (1.4), it already includes a few maps and programs, which would be counted twice.
void check_descriptors(const bpf_object* object, size_t processes)
{
    // 27 descriptors for streams, timers, signals, helpers' sockets, file watches and libbpf's links, counted after
    // attaching to the first file; 16 that Attacher keeps free; and one spare.
    constexpr size_t others = 44;
    // one per CPU for MappingWatch
    size_t needed = others + processes + static_cast<size_t>(libbpf_num_possible_cpus());
    const bpf_map* map = nullptr;
    bpf_object__for_each_map (map, object)
        needed++;
    bpf_program* program = nullptr;
    bpf_object__for_each_program (program, object)
        needed += bpf_program__autoload(program);
    need(needed);
}

namespace {

std::string count(unsigned n, std::string_view what)
{
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string clean_events()
try {
    const LeftoverEvents events = remove_leftover_events(Tracefs());
    std::string text;
    if (events.removed)
        text += fmt::format("removed {} of killed runs\n", count(events.removed, "uprobe event"));
    if (events.in_use)
        text += fmt::format("not removed, as still in use: {} of killed runs\n", count(events.in_use, "uprobe event"));
    if (events.of_running)
        text += fmt::format("kept {} of running processes\n", count(events.of_running, "uprobe event"));
    return text;
} catch (const Error& error) {
    verbose(error.what()); // without tracefs, no run can have left events behind
    return {};
}

std::string clean_cache()
{
    const std::string folder = ScanCache::default_folder();
    const unsigned removed = ScanCache(folder).remove_unfinished();
    return removed ? fmt::format("removed {} from {}\n", count(removed, "unfinished file"), folder) : std::string();
}

} // namespace

std::string clean_up()
{
    preflight(false); // rejects a pid namespace, in which running processes would seem to have exited
    const std::string text = clean_events() + clean_cache();
    return text.find("removed") == std::string::npos ? text + "nothing to remove\n" : text;
}

} // namespace gpusnoop
