// SPDX-License-Identifier: Apache-2.0
// What the kernel has in its account of TCP sockets: asked for by netlink (sock_diag(7)), those of a network namespace
// at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// Of its life. nullopt: the kernel does not tell.
struct TcpSocket {
    uint64_t cookie = 0;                   // no other socket has it until the machine starts anew
    uint32_t inode = 0;                    // 0: no descriptor leads to it
    std::string address;                   // of its peer
    uint16_t port = 0;                     // the same
    std::optional<uint64_t> rtt_us{};      // smoothed; none without an answer
    std::optional<uint64_t> segments{};    // with data, that were sent
    std::optional<uint64_t> retransmits{}; // of any kind
    std::optional<uint64_t> arrived{};     // segments with data
    std::optional<uint64_t> out_of_order{};
    std::optional<uint64_t> sent_bytes{}; // once, however often that took
    std::optional<uint64_t> received_bytes{};
};

enum class TcpAnswer : uint8_t { goes_on, complete, refused };

// Adds the sockets of some messages of an answer. Whether it ends with them.
TcpAnswer parse_tcp_answer(std::span<const std::byte> messages, std::vector<TcpSocket>& sockets);

struct TcpSockets {
    std::vector<TcpSocket> sockets; // that are connected, or about to be
    bool all = true;                // or there are more than are asked for
};

// Of the network namespace that the process is in; nullopt where that cannot be asked. Throws Error where there is no
// way back from there.
std::optional<TcpSockets> tcp_sockets(pid_t pid);

// Its number; 0 where the process is gone.
uint64_t network_namespace(pid_t pid);

struct SocketInodes {
    std::set<uint32_t> inodes; // of any family
    bool all = true;           // or the process has more descriptors than are looked at
};

SocketInodes socket_inodes(pid_t pid);

} // namespace gpusnoop
