// SPDX-License-Identifier: Apache-2.0
#include "proc/cpu_hotplug.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <linux/netlink.h>
#include <sys/socket.h>

namespace gpusnoop {
namespace {

constexpr uint32_t kernel_group = 1; // udev sends to 2

Fd open_socket()
{
    Fd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = kernel_group;
    if (fd && bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
        return {};
    return fd;
}

} // namespace

CpuHotplug::CpuHotplug() : socket_(open_socket()) {}

CpuHotplug::Online CpuHotplug::drain()
{
    Online found;
    for (;;) {
        std::array<char, 4096> uevent; // UEVENT_BUFFER_SIZE is 2048
        sockaddr_nl sender{};
        socklen_t length = sizeof(sender);
        const ssize_t size =
            recvfrom(socket_.get(), uevent.data(), uevent.size(), 0, reinterpret_cast<sockaddr*>(&sender), &length);
        if (size < 0 && errno == ENOBUFS) {
            found.lost = true;
            continue;
        }
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return found;
        if (sender.nl_pid != 0) // not the kernel
            continue;
        if (const auto cpu = parse({uevent.data(), static_cast<size_t>(size)}))
            found.cpus.push_back(*cpu);
    }
}

std::optional<int> CpuHotplug::parse(std::string_view uevent)
{
    constexpr std::string_view beginning = "online@/devices/system/cpu/cpu";
    uevent = uevent.substr(0, uevent.find('\0'));
    if (!uevent.starts_with(beginning))
        return std::nullopt;
    uevent.remove_prefix(beginning.size());
    int cpu = 0;
    const auto [end, error] = std::from_chars(uevent.data(), uevent.data() + uevent.size(), cpu);
    return error == std::errc() && end == uevent.data() + uevent.size() && cpu >= 0 ? std::optional(cpu) : std::nullopt;
}

} // namespace gpusnoop
