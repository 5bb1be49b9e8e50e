// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/send_signal.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "proc/process.hpp"
#include "proc/threads.hpp"

#include <cerrno>
#include <csignal>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpusnoop::cudatop {

std::string send_signal(const RowProcess& process, const std::string& name, int number)
{
    const auto pid = static_cast<pid_t>(process.pid);
    const std::string_view signal = number == SIGKILL ? "SIGKILL" : "SIGTERM";
    const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); // Linux 5.3; glibc 2.36
    if (!pidfd && errno != ESRCH)
        return fmt::format("cannot send {} to {}: {}", signal, name, errno_text(errno));
    // This check comes after pidfd_open(), because the pid may have been reused before that call.
    if (!pidfd || start_time_ns(pid) != to_clock_tick(process.start_ns) || !running_thread(pid))
        return fmt::format("{} not sent: {} has exited", signal, name);
    if (::syscall(SYS_pidfd_send_signal, pidfd.get(), number, nullptr, 0) == 0)
        return fmt::format("sent {} to {}", signal, name);
    if (errno == ESRCH)
        return fmt::format("{} not sent: {} has exited", signal, name);
    if (errno == EPERM)
        return fmt::format("cannot send {} to {}: it belongs to another user, and cudatop lacks CAP_KILL", signal,
                           name);
    return fmt::format("cannot send {} to {}: {}", signal, name, errno_text(errno));
}

} // namespace gpusnoop::cudatop
