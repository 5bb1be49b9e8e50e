// SPDX-License-Identifier: Apache-2.0
// TCP connections of processes by peer: round-trip times, retransmissions and bytes. Counters are reported as
// differences from the previous scan.
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

// One TCP socket as reported by sock_diag(7). Counters cover the socket's lifetime. A value is nullopt if the kernel
// does not report it.
struct TcpSocket {
    uint64_t cookie = 0;                   // unique until reboot
    uint32_t inode = 0;                    // 0 if no descriptor refers to the socket
    std::string address;                   // address of the peer
    uint16_t port = 0;                     // port of the peer
    std::optional<uint64_t> rtt_us{};      // smoothed round-trip time; nullopt before the first acknowledgement
    std::optional<uint64_t> segments{};    // data segments sent
    std::optional<uint64_t> retransmits{}; // retransmitted segments of any kind
    std::optional<uint64_t> arrived{};     // data segments received
    std::optional<uint64_t> out_of_order{};
    std::optional<uint64_t> sent_bytes{}; // bytes sent, not counting retransmissions
    std::optional<uint64_t> received_bytes{};
};

enum class TcpAnswer : uint8_t { unfinished, complete, refused };

// Parses the messages of one datagram of a netlink answer, and appends the sockets that they describe. Returns
// `unfinished` if more datagrams must follow.
TcpAnswer parse_tcp_answer(std::span<const std::byte> messages, std::vector<TcpSocket>& sockets);

struct TcpSockets {
    std::vector<TcpSocket> sockets; // connected or connecting
    bool all = true;                // false: there are more sockets than the limit
};

// The sockets in the process's network namespace; nullopt if the namespace cannot be entered or queried. Throws Error
// if this thread cannot return to its own namespace.
std::optional<TcpSockets> tcp_sockets(pid_t pid);

// The inode number of the process's network namespace; 0 if the process has exited.
uint64_t network_namespace(pid_t pid);

struct SocketInodes {
    std::set<uint32_t> inodes; // inodes of sockets of any address family
    bool all = true;           // false: the process has more descriptors than the limit
};

SocketInodes socket_inodes(pid_t pid);

// All connections of a process to one address, in an interval. A value is nullopt if the kernel reports it for none of
// the connections.
struct Peer {
    std::string address;
    std::optional<uint16_t> port{}; // port of the peer, if all connections have the same
    uint64_t connections = 0;
    std::vector<uint64_t> rtts_us{}; // round-trip time of each connection at the end of the interval
    std::optional<uint64_t> segments{}, retransmits{}, arrived{}, out_of_order{}, sent_bytes{}, received_bytes{};

    // "10.0.0.2:9000", "[fd00::2]:9000"; without a port if the connections have several.
    std::string name() const;
    // Percentile of the smoothed round-trip times (0.95: p95); nullopt if no round-trip time is known yet.
    std::optional<uint64_t> rtt_us(double share) const;
    Peer& operator+=(const Peer& other); // other: connections of another process to the same address
};

using KnownSockets = std::map<uint64_t, TcpSocket>; // by TcpSocket::cookie

// Differences between two scans, by peer. were_all: true if the earlier scan was complete, so that a socket missing
// from it is new.
std::vector<Peer> peers_of(const std::vector<TcpSocket>& now, const KnownSockets& earlier, bool were_all);

class PeersOf {
public:
    // Scans the sockets of processes that are not tracked yet. The counters of their connections start at 0 now.
    void track(const std::vector<ImageId>& images);
    // Ends an interval for all tracked processes.
    void refresh();
    struct Result {
        std::vector<Peer> peers;
        bool all = true; // false: there are more connections, or descriptors, than the limits
    };
    // Result of the last refresh(); null if it has no result for this process.
    const Result* of(const ImageId& image) const;
    void forget(const std::vector<ImageId>& images);

private:
    struct Known {
        KnownSockets sockets;
        bool all = false;
        std::optional<Result> result;
    };
    struct Scan {
        std::vector<TcpSocket> sockets;
        bool all = true;
    };
    // Scans by network namespace. A scan is expensive, and many processes may share a namespace.
    using Scans = std::map<uint64_t, std::optional<TcpSockets>>;
    static std::optional<Scan> scan_process(const ImageId& image, Scans& scans);

    std::map<ImageId, Known> known_;
};

} // namespace gpusnoop
