// SPDX-License-Identifier: Apache-2.0
// The TCP connections of processes by whom they lead to: how far away that is, what got lost on the way, how much went
// to and fro. Told as what has come since the last look.
#pragma once

#include "proc/mapped_file.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gpusnoop {

// What the kernel has in its account of TCP sockets: asked for by netlink (sock_diag(7)), those of a network namespace
// at once.

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

// All connections of a process to one address, in an interval. nullopt: the kernel does not tell of any of them.
struct Peer {
    std::string address;
    std::optional<uint16_t> port{}; // where all have the same
    uint64_t connections = 0;
    std::vector<uint64_t> rtts_us{}; // of each, at the end
    std::optional<uint64_t> segments{}, retransmits{}, arrived{}, out_of_order{}, sent_bytes{}, received_bytes{};

    // "10.0.0.2:9000", "[fd00::2]:9000"; without a port where they have several.
    std::string name() const;
    // The smoothed time of that share of the connections, or less; nullopt: no peer has answered yet.
    std::optional<uint64_t> rtt_us(double share) const;
    Peer& operator+=(const Peer& other); // of another process, with the same address
};

using KnownSockets = std::map<uint64_t, TcpSocket>; // by cookie

// What has come since those were there. If they were all that there were, whatever is new was opened since.
std::vector<Peer> peers_of(const std::vector<TcpSocket>& now, const KnownSockets& earlier, bool were_all);

class PeersOf {
public:
    // Looks at those that are not known yet: what they have done before is not told.
    void meet(const std::vector<ImageId>& images);
    // An interval ends: of those that have been met.
    void refresh();
    // As of the last refresh(). Not all: there are more connections, or descriptors, than are looked at. Null: unknown.
    struct Told {
        std::vector<Peer> peers;
        bool all = true;
    };
    const Told* of(const ImageId& image) const;
    void forget(const std::vector<ImageId>& images);

private:
    struct Known {
        KnownSockets sockets;
        bool all = false;
        std::optional<Told> told;
    };
    struct Seen {
        std::vector<TcpSocket> sockets;
        bool all = true;
    };
    // By network namespace: a look at one is dear where many processes are in it.
    using Looks = std::map<uint64_t, std::optional<TcpSockets>>;
    static std::optional<Seen> look(const ImageId& image, Looks& looks);

    std::map<ImageId, Known> known_;
};

} // namespace gpusnoop
