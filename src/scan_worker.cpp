// SPDX-License-Identifier: Apache-2.0
#include "scan_worker.hpp"

#include "error.hpp"
#include "registration_scan.hpp"

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace gpusnoop {
namespace {

constexpr std::chrono::seconds longest(30); // on the clock: the disk may be slow
constexpr rlim_t cpu_seconds = 5;           // far above what cuBLASLt takes, which is 1.3
constexpr rlim_t memory_bytes = 256 << 20;  // more than we have ourselves
constexpr gid_t nobody = 65534;

constexpr int file_fd = 3;
constexpr int result_fd = 4;

#ifdef __SANITIZE_ADDRESS__
constexpr bool sanitized = true; // which maps terabytes, and calls what it likes
#else
constexpr bool sanitized = false;
#endif

void limit(__rlimit_resource resource, rlim_t value)
{
    const rlimit both{value, value};
    setrlimit(resource, &both);
}

// Private memory of this process up to now.
rlim_t data_bytes()
{
    Fd statm(open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
    char text[128]{};
    unsigned long fields[6]{};
    if (read(statm.get(), text, sizeof(text) - 1) <= 0 ||
        sscanf(text, "%lu %lu %lu %lu %lu %lu", &fields[0], &fields[1], &fields[2], &fields[3], &fields[4],
               &fields[5]) != 6)
        return RLIM_INFINITY;
    return fields[5] * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

void drop_privileges()
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (geteuid() == 0) {
        if (setgroups(0, nullptr) || setresgid(nobody, nobody, nobody) || setresuid(nobody, nobody, nobody))
            _exit(1);
        prctl(PR_SET_PDEATHSIG, SIGKILL); // forgotten where the user changes
    }
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const __user_cap_data_struct none[2]{};
    if (syscall(SYS_capset, &header, none))
        _exit(1);
}

// What malloc, libelf and the scan need. Anything else kills. Without seccomp in the kernel, the rest has to do.
void restrict_calls()
{
    constexpr uint32_t allowed[] = {SYS_pread64,      SYS_read,    SYS_write,     SYS_lseek, SYS_fstat,
                                    SYS_newfstatat,   SYS_fcntl,   SYS_brk,       SYS_mmap,  SYS_munmap,
                                    SYS_mremap,       SYS_madvise, SYS_close,     SYS_futex, SYS_getrandom,
                                    SYS_rt_sigreturn, SYS_exit,    SYS_exit_group};
    std::vector<sock_filter> program = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
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

void write_all(std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t done = write(result_fd, bytes.data(), bytes.size());
        if (done <= 0)
            _exit(1);
        bytes.remove_prefix(static_cast<size_t>(done));
    }
}

[[noreturn]] void scan(int file, int result)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Above what they become, so that neither is overwritten by the other.
    const int high_file = fcntl(file, F_DUPFD, 16);
    const int high_result = fcntl(result, F_DUPFD, 16);
    if (dup2(high_file, file_fd) < 0 || dup2(high_result, result_fd) < 0)
        _exit(1);
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (!sanitized)
        dup2(null, STDERR_FILENO);
    syscall(SYS_close_range, result_fd + 1, ~0U, 0); // 5.9
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, cpu_seconds);
    limit(RLIMIT_FSIZE, encoded_max);
    const rlim_t before = sanitized ? RLIM_INFINITY : data_bytes();
    if (before != RLIM_INFINITY)
        limit(RLIMIT_DATA, before + memory_bytes);
    drop_privileges();
    if (!sanitized)
        restrict_calls();
    try {
        write_all(encode(scan_registrations(Elf(Fd(file_fd)))));
    } catch (const std::exception&) {
        _exit(1);
    }
    _exit(0);
}

} // namespace

ScanWorker::ScanWorker(Fd file)
    : result_(memfd_create("gpusnoop-scan", MFD_CLOEXEC)), begun_(std::chrono::steady_clock::now())
{
    if (!file || !result_)
        return;
    child_ = fork();
    if (child_ == 0)
        scan(file.get(), result_.get());
}

ScanWorker::~ScanWorker()
{
    if (child_ <= 0)
        return;
    kill(child_, SIGKILL);
    // Not for ever: a process that reads from a file system that hangs does not end.
    for (int tries = 0; tries < 1000 && waitpid(child_, nullptr, WNOHANG) == 0; tries++)
        usleep(1000);
}

bool ScanWorker::ended()
{
    if (child_ <= 0)
        return true;
    if (std::chrono::steady_clock::now() - begun_ > longest)
        kill(child_, SIGKILL);
    int status = 0;
    const pid_t gone = waitpid(child_, &status, WNOHANG);
    if (gone == 0)
        return false;
    child_ = -1;
    if (gone < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        result_ = {};
    return true;
}

std::optional<Registrations> ScanWorker::answer() const
{
    struct stat st {};
    if (!result_ || fstat(result_.get(), &st) != 0 || st.st_size < 0 || static_cast<size_t>(st.st_size) > encoded_max)
        return std::nullopt;
    std::vector<char> bytes(static_cast<size_t>(st.st_size));
    const ssize_t got = pread(result_.get(), bytes.data(), bytes.size(), 0);
    return got == std::ssize(bytes) ? decode_registrations(bytes) : std::nullopt;
}

} // namespace gpusnoop
