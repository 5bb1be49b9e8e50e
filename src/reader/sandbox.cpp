// SPDX-License-Identifier: Apache-2.0
#include "reader/sandbox.hpp"

#include "base/fd.hpp"
#include "base/machine.hpp"
#include "base/privileges.hpp"

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace gpusnoop {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool sanitized = true; // the sanitizer maps terabytes and makes arbitrary system calls
#else
constexpr bool sanitized = false;
#endif

void limit(__rlimit_resource resource, rlim_t value)
{
    const rlimit both{value, value};
    setrlimit(resource, &both);
}

// Returns the size of this process's private memory.
rlim_t data_bytes()
{
    const Fd statm(open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
    std::array<char, 128> text{};
    std::array<unsigned long, 6> fields{};
    if (read(statm.get(), text.data(), text.size() - 1) <= 0 ||
        sscanf(text.data(), "%lu %lu %lu %lu %lu %lu", &fields[0], &fields[1], &fields[2], &fields[3], &fields[4],
               &fields[5]) != 6)
        return RLIM_INFINITY;
    return fields[5] * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// Switches to a user id that no other process has, because processes with the same id could stop or kill this one.
// 65534 (nobody) is only the fallback, because other processes in a container may have it. Ids from 2^31 on are not
// assigned to users, because some programs treat them as negative.
void change_user()
{
    if (geteuid() != 0)
        return;
    const auto own = uid_t{4'000'000'000} + static_cast<uid_t>(getpid());
    constexpr uid_t overflow_id = 65534; // fallback for user namespaces that do not map `own`
    prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    for (const uid_t user : {own, overflow_id})
        if (!setgroups(0, nullptr) && !setresgid(user, user, user) && !setresuid(user, user, user))
            return;
    _exit(1);
}

// Allows only the calls below and `more`. Any other system call kills this process. Has no effect if the kernel lacks
// seccomp.
void restrict_calls(std::span<const uint32_t> more)
{
    // System calls that malloc, libelf, and reading from descriptors need.
    std::vector<uint32_t> allowed = {SYS_pread64,      SYS_read,    SYS_write,     SYS_lseek, SYS_fstat,
                                     SYS_newfstatat,   SYS_fcntl,   SYS_brk,       SYS_mmap,  SYS_munmap,
                                     SYS_mremap,       SYS_madvise, SYS_close,     SYS_futex, SYS_getrandom,
                                     SYS_rt_sigreturn, SYS_exit,    SYS_exit_group};
    allowed.insert(allowed.end(), more.begin(), more.end());
    std::vector<sock_filter> program = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine::audit_arch, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    };
    for (const uint32_t number : allowed) {
        program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
        program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

// Capabilities and system calls for reading other processes.
constexpr int reading_capabilities[] = {CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE, CAP_DAC_READ_SEARCH};
constexpr uint32_t reading_calls[] = {SYS_openat,           SYS_openat2,           SYS_statx,           SYS_recvmsg,
                                      SYS_sendmsg,          SYS_clock_gettime,     SYS_getpid,          SYS_getdents64,
                                      SYS_process_vm_readv, SYS_inotify_add_watch, SYS_inotify_rm_watch};

} // namespace

Sandbox process_reading_sandbox(uint64_t memory_bytes)
{
    return {.capabilities = reading_capabilities,
            .calls = reading_calls,
            .memory_bytes = memory_bytes,
            .cpu_seconds = std::nullopt,
            .output_bytes = 0};
}

void enter_sandbox(const Sandbox& sandbox)
{
    if (!sanitized)
        dup2(STDOUT_FILENO, STDERR_FILENO); // standard output is /dev/null, see reader/child.hpp
    limit(RLIMIT_CORE, 0);
    if (sandbox.cpu_seconds)
        limit(RLIMIT_CPU, *sandbox.cpu_seconds);
    if (sandbox.output_bytes)
        limit(RLIMIT_FSIZE, *sandbox.output_bytes);
    const rlim_t before = sanitized ? RLIM_INFINITY : data_bytes();
    if (before != RLIM_INFINITY)
        limit(RLIMIT_DATA, before + sandbox.memory_bytes);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    change_user();
    if (!keep_capabilities(sandbox.capabilities))
        _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL); // set again, because the change of the user id clears it
    if (!sanitized)
        restrict_calls(sandbox.calls);
}

} // namespace gpusnoop
