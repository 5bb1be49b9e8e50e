// SPDX-License-Identifier: Apache-2.0
// The TCP connections of processes by whom they lead to: how far away that is, what got lost on the way, how much went
// to and fro. Told as what has come since the last look.
#pragma once

#include "proc/mapped_file.hpp"
#include "proc/tcp_sockets.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

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
