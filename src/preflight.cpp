// SPDX-License-Identifier: Apache-2.0
#include "preflight.hpp"

#include "error.hpp"

#include <cerrno>
#include <fstream>
#include <linux/capability.h>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

bool has_admin_capability()
{
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    if (syscall(SYS_capget, &header, data))
        return false;
    return data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN);
}

std::string first_line(const char* path)
{
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

} // namespace

void preflight()
{
    // uprobe_multi asks for CAP_SYS_ADMIN itself, and so does /proc/PID/map_files.
    if (!has_admin_capability())
        throw Error("tracing other processes needs root (CAP_SYS_ADMIN), and this is an ordinary user",
                    "run it with sudo");
    // Root of a user namespace has the capability there, not over the kernel.
    std::istringstream map(first_line("/proc/self/uid_map"));
    uint64_t inside = 0, outside = 0, count = 0;
    if (map >> inside >> outside >> count && count != UINT32_MAX)
        throw Error("this is root of a user namespace (a rootless container), which may not trace the host",
                    "run it as root of the host");
    if (first_line("/sys/kernel/security/lockdown").find("[confidentiality]") != std::string::npos)
        throw Error("the kernel is locked down (confidentiality mode): BPF programs may not read memory",
                    "boot with lockdown=integrity or none (see man 7 kernel_lockdown)");
    if (access("/sys/kernel/btf/vmlinux", R_OK))
        throw Error("this kernel has no BTF (/sys/kernel/btf/vmlinux): " + errno_text(errno),
                    "a kernel built with CONFIG_DEBUG_INFO_BTF=y is needed; every current distribution's is");
    // The initial pid namespace has a fixed inode number (PROC_PID_INIT_INO in include/linux/proc_ns.h).
    constexpr ino_t initial_pid_namespace = 0xEFFFFFFC;
    struct stat st {};
    if (stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != initial_pid_namespace)
        throw Error("this is a container with process ids of its own, and the kernel reports those of the host",
                    "run it on the host, or in a container with the host's pid namespace (--pid=host, hostPID: true)");
}

} // namespace gpusnoop
