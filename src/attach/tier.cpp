// SPDX-License-Identifier: Apache-2.0
#include "attach/tier.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/machine.hpp"

#include <bpf/bpf.h>
#include <cerrno>
#include <csignal>
#include <fmt/format.h>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

// A program that does nothing, to see what the kernel says to a link.
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

// The kernel's answer to a link on something that is no file: it looks at the file last.
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

// "/" is no regular file: EBADF from a kernel that knows the attach type, EINVAL from one that does not.
bool takes(int attach_type)
{
    return try_link(attach_type, 0) == -EBADF;
}

using machine::uprobe_return_call;

// Makes the system call in a child and says how that ended: an errno, 0, or -1 for a signal.
int call_in_child(bool filtered)
{
    if (!uprobe_return_call)
        return ENOSYS;
    pid_t child = fork();
    if (child == 0) {
        // The call is refused with SIGILL where it does not come from the kernel's own return trampoline.
        signal(SIGILL, SIG_DFL);
        signal(SIGSYS, SIG_DFL);
        sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uprobe_return_call, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        sock_fprog program{.len = std::size(filter), .filter = filter};
        if (filtered &&
            (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)))
            _exit(0);
        _exit(syscall(uprobe_return_call) < 0 ? errno : 0);
    }
    if (child < 0) // and what the kernel does is unknown, which may kill a target
        throw Error("the kernel cannot be asked whether return probes are safe: no child process can be made: " +
                        errno_text(errno),
                    "raise the limit of tasks (pids.max of the cgroup, ulimit -u), or trace one process (-p)");
    int status = 0;
    pid_t gone = 0;
    do
        gone = waitpid(child, &status, 0);
    while (gone < 0 && errno == EINTR);
    if (gone != child)
        throw Error("the kernel cannot be asked whether return probes are safe: the child process that asks cannot be "
                    "waited for: " +
                    errno_text(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
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
    if (takes(uprobe_session_attach_type) && takes(uprobe_multi_attach_type))
        return Tier::session;
    if (takes(uprobe_multi_attach_type))
        return Tier::multi;
    struct stat mount_point {};
    if (stat("/sys/kernel/tracing", &mount_point) == 0)
        return Tier::tracefs;
    return Tier::perf;
}

bool multi_filters_processes()
{
    // A kernel with the repaired filter refuses a negative pid before it looks at the file (libbpf does it this way).
    return try_link(uprobe_multi_attach_type, -1) == -EINVAL;
}

bool return_probes_break_seccomp()
{
    // Unfiltered, ENOSYS means that returns do not go through a system call at all. Filtered, EDOM means that the
    // process' filter is asked about it.
    return call_in_child(false) != ENOSYS && call_in_child(true) == EDOM;
}

} // namespace gpusnoop
