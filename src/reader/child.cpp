// SPDX-License-Identifier: Apache-2.0
#include "reader/child.hpp"

#include "base/ending_signals.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace gpusnoop {
namespace {

// notice: write end of the pipe whose read end is Child::inherited_. The child closes it after all other descriptors
// that it does not keep.
[[noreturn]] void run(std::vector<int> descriptors, int notice, const std::function<void()>& work)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    descriptors.push_back(notice);
    if (!keep_only(descriptors))
        _exit(1);
    close(Child::first_fd + static_cast<int>(descriptors.size()) - 1); // notice
    try {
        work();
    } catch (const std::exception&) {
        _exit(1);
    }
    _exit(0);
}

// Children that were killed but did not exit in time. They are reaped when the next child starts or ends.
std::vector<pid_t>& left_behind()
{
    static std::vector<pid_t> pids;
    return pids;
}

void reap_left_behind()
{
    std::erase_if(left_behind(), [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
}

} // namespace

bool keep_only(const std::vector<int>& descriptors)
{
    // The descriptors are first moved above the target numbers, so that dup2() overwrites none of them.
    std::vector<int> high;
    for (int fd : descriptors)
        high.push_back(fcntl(fd, F_DUPFD, Child::first_fd + static_cast<int>(descriptors.size())));
    int next = Child::first_fd;
    for (int fd : high)
        if (dup2(fd, next++) < 0)
            return false;
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    syscall(SYS_close_range, next, ~0U, 0); // since Linux 5.9
    return true;
}

Child::Child(std::initializer_list<int> descriptors, const std::function<void()>& work)
{
    reap_left_behind();
    for (int fd : descriptors)
        if (fd < 0)
            return;
    std::array<int, 2> ends{-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        error_ = errno;
        return;
    }
    inherited_ = Fd(ends[0]);
    Fd notice(ends[1]);
    // The child blocks the signals that end its owner, such as Ctrl-C. The kernel kills the child when its owner exits
    // (PR_SET_PDEATHSIG), so a signal that ends the owner also ends the child.
    const sigset_t owner_signals = ending_signal_set();
    sigset_t before{};
    ::sigprocmask(SIG_BLOCK, &owner_signals, &before);
    pid_ = fork();
    if (pid_ == 0)
        run(descriptors, notice.get(), work);
    error_ = pid_ < 0 ? errno : 0;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    notice = {};
    wait_until_descriptors_closed(std::chrono::seconds(1)); // takes under 1 ms, except on a busy machine
}

// Waits until the child has closed its copies of our descriptors. If we closed a BPF link earlier, the child's copy
// would keep the link open. The probes would then be detached when the child exits, which is slow.
void Child::wait_until_descriptors_closed(std::chrono::milliseconds timeout)
{
    pollfd copies{inherited_.get(), POLLIN, 0};
    if (inherited_ && poll(&copies, 1, static_cast<int>(timeout.count())) > 0)
        inherited_ = {};
}

Child::~Child()
{
    kill();
    wait_until_descriptors_closed(std::chrono::minutes(1));
    // The wait is limited, because a process that hangs in a file system or device does not exit.
    for (int tries = 0; tries < 100 && !ended(); tries++)
        usleep(1000);
    reap_left_behind();
    if (pid_ > 0)
        left_behind().push_back(pid_);
}

bool Child::is_left_behind(pid_t pid)
{
    reap_left_behind();
    return std::ranges::find(left_behind(), pid) != left_behind().end();
}

void Child::kill()
{
    if (pid_ > 0)
        ::kill(pid_, SIGKILL);
}

bool Child::ended()
{
    if (pid_ <= 0)
        return true;
    int status = 0;
    const pid_t waited = waitpid(pid_, &status, WNOHANG);
    if (waited == 0)
        return false;
    pid_ = -1;
    succeeded_ = waited > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return true;
}

} // namespace gpusnoop
