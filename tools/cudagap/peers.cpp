// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/peers.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

namespace gpusnoop {
namespace {

constexpr size_t most = 256; // processes that are looked at

using Count = std::optional<uint64_t>;

void add(Count& to, const Count& more)
{
    if (more)
        to = to.value_or(0) + *more;
}

// How much more it is than before; from where it was made, where it was not there before.
Count since(const Count& now, const TcpSocket* earlier, Count TcpSocket::*of, bool were_all)
{
    if (earlier)
        return now && earlier->*of && *now >= *(earlier->*of) ? Count(*now - *(earlier->*of)) : std::nullopt;
    return were_all ? now : std::nullopt;
}

KnownSockets by_cookie(const std::vector<TcpSocket>& sockets)
{
    KnownSockets known;
    for (const TcpSocket& socket : sockets)
        known.emplace(socket.cookie, socket);
    return known;
}

} // namespace

std::string Peer::name() const
{
    if (!port)
        return address;
    const bool is_ipv6 = address.find(':') != std::string::npos;
    return fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", address, is_ipv6 ? "]" : "", *port);
}

std::optional<uint64_t> Peer::rtt_us(double share) const
{
    if (rtts_us.empty())
        return std::nullopt;
    std::vector<uint64_t> sorted = rtts_us;
    std::ranges::sort(sorted);
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::max<size_t>(rank, 1) - 1];
}

Peer& Peer::operator+=(const Peer& other)
{
    if (port != other.port)
        port.reset();
    connections += other.connections;
    std::ranges::copy(other.rtts_us, std::back_inserter(rtts_us));
    add(segments, other.segments);
    add(retransmits, other.retransmits);
    add(arrived, other.arrived);
    add(out_of_order, other.out_of_order);
    add(sent_bytes, other.sent_bytes);
    add(received_bytes, other.received_bytes);
    return *this;
}

std::vector<Peer> peers_of(const std::vector<TcpSocket>& now, const KnownSockets& earlier, bool were_all)
{
    std::map<std::string, Peer> peers;
    for (const TcpSocket& socket : now) {
        const auto found = earlier.find(socket.cookie);
        const TcpSocket* before = found == earlier.end() ? nullptr : &found->second;
        const auto come = [&](Count TcpSocket::*of) { return since(socket.*of, before, of, were_all); };
        const Peer one{.address = socket.address,
                       .port = socket.port,
                       .connections = 1,
                       .rtts_us = socket.rtt_us ? std::vector{*socket.rtt_us} : std::vector<uint64_t>(),
                       .segments = come(&TcpSocket::segments),
                       .retransmits = come(&TcpSocket::retransmits),
                       .arrived = come(&TcpSocket::arrived),
                       .out_of_order = come(&TcpSocket::out_of_order),
                       .sent_bytes = come(&TcpSocket::sent_bytes),
                       .received_bytes = come(&TcpSocket::received_bytes)};
        if (const auto [at, is_new] = peers.emplace(one.address, one); !is_new)
            at->second += one;
    }
    std::vector<Peer> all;
    for (auto& [address, peer] : peers)
        all.push_back(std::move(peer));
    return all;
}

std::optional<PeersOf::Seen> PeersOf::look(const ImageId& image, Looks& looks)
{
    const auto pid = static_cast<pid_t>(image.pid);
    const uint64_t number = network_namespace(pid);
    if (!number)
        return std::nullopt;
    const SocketInodes own = socket_inodes(pid); // before those of the namespace: what is younger is seen the next time
    auto found = looks.find(number);
    if (found == looks.end())
        found = looks.emplace(number, tcp_sockets(pid)).first;
    if (!found->second)
        return std::nullopt;
    Seen seen{.sockets = {}, .all = own.all && found->second->all};
    std::ranges::copy_if(found->second->sockets, std::back_inserter(seen.sockets),
                         [&](const TcpSocket& socket) { return own.inodes.contains(socket.inode); });
    return seen;
}

void PeersOf::meet(const std::vector<ImageId>& images)
{
    Looks looks;
    for (const ImageId& image : images) {
        if (known_.size() >= most || known_.contains(image))
            continue;
        Known& known = known_[image];
        if (const auto seen = look(image, looks)) {
            known.sockets = by_cookie(seen->sockets);
            known.all = seen->all;
        }
    }
}

void PeersOf::refresh()
{
    Looks looks;
    for (auto& [image, known] : known_) {
        const auto seen = look(image, looks);
        known.told.reset();
        if (!seen)
            continue;
        known.told = {.peers = peers_of(seen->sockets, known.sockets, known.all), .all = seen->all};
        known.sockets = by_cookie(seen->sockets);
        known.all = seen->all;
    }
}

const PeersOf::Told* PeersOf::of(const ImageId& image) const
{
    const auto found = known_.find(image);
    return found != known_.end() && found->second.told ? &*found->second.told : nullptr;
}

void PeersOf::forget(const std::vector<ImageId>& images)
{
    for (const ImageId& image : images)
        known_.erase(image);
}

} // namespace gpusnoop
