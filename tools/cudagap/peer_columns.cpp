// SPDX-License-Identifier: Apache-2.0
// TCP connections: a row for each address, of each process or whatever else rows are by.
#include "tools/cudagap/columns.hpp"

namespace gpusnoop::cudagap {
namespace {

using K = PeerKey;
using G = PeerGroup;
using C = Context;

template<auto member>
Cell of_peer(const K&, const G& g, const C&)
{
    return cell_if(g.peer.*member);
}

template<int percent>
Cell rtt(const K&, const G& g, const C&)
{
    const auto us = g.peer.rtt_us(percent / 100.0);
    return us ? Cell(*us * 1000) : Cell();
}

constexpr Field<C, K, G> fields[] = {
    Field<C, K, G>{{"PEER", "peer", Unit::text, 21},
                   always<C>,
                   [](const K&, const G& g, const C&) { return Cell(g.peer.address); },
                   "The address that they lead to, with its port if all have the same."}
        .in_text([](const K&, const G& g, const C&) { return Cell(g.peer.name()); }),
    {{"", "peer_port", Unit::count}, json_only<C>, [](const K&, const G& g, const C&) { return cell_if(g.peer.port); }},
    {{"CONNS", "connections", Unit::count, 5},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.peer.connections); },
     "How many they are, at the end of the interval."},
    {{"RTT(us)", "rtt_p50_ns", Unit::ns_as_us, 8},
     always<C>,
     rtt<50>,
     "How long it takes until a segment is acknowledged, smoothed by the kernel: of half and of 95% of the "
     "connections, "
     "this or less, at the end of the interval. If the peer is on the same machine, it is the time until that one's "
     "kernel has answered."},
    {{"RTT95(us)", "rtt_p95_ns", Unit::ns_as_us, 9}, always<C>, rtt<95>},
    {{"SEGS", "segments", Unit::count, 8},
     always<C>,
     of_peer<&Peer::segments>,
     "Segments with data that were sent, and segments of any kind that were retransmitted."},
    {{"RETRANS", "retransmits", Unit::count, 7}, always<C>, of_peer<&Peer::retransmits>},
    {{"SENT", "sent_bytes", Unit::bytes, 7},
     always<C>,
     of_peer<&Peer::sent_bytes>,
     "Data, each byte once, however often it was sent."},
    {{"RECEIVED", "received_bytes", Unit::bytes, 8}, always<C>, of_peer<&Peer::received_bytes>},
    {{"", "segments_received", Unit::count},
     json_only<C>,
     of_peer<&Peer::arrived>,
     "Segments with data that arrived, and those of them that came before others that they are behind: what the peer "
     "retransmitted, that process knows, but not this one."},
    {{"OOO", "out_of_order", Unit::count, 5}, always<C>, of_peer<&Peer::out_of_order>},
    {{"", "connections_untold", Unit::count},
     json_only<C>,
     [](const K&, const G& g, const C&) { return g.all ? Cell() : Cell(uint64_t{1}); },
     "1 if not all connections are reported: of a process with more than 8192 descriptors, or in a network namespace "
     "with more than 32768 connections. Of more than 256 processes, the rest have no rows."},
};

} // namespace

std::map<PeerKey, PeerGroup> group_peers(const std::vector<ThreadTime>& times, const PeersOf& peers,
                                         const CallView& view, Processes& processes)
{
    std::map<ImageId, cgroups> images; // those of one of its threads
    for (const ThreadTime& time : times)
        images.emplace(time.image, time.cgroup);
    std::map<PeerKey, PeerGroup> groups;
    for (const auto& [image, cgroup] : images) {
        const PeersOf::Told* told = peers.of(image);
        if (!told)
            continue;
        for (const Peer& peer : told->peers) {
            const PeerKey key{who_key(view.who, processes, image, 0, cgroup), peer.address};
            const auto [at, is_new] = groups.try_emplace(key);
            if (is_new)
                at->second.peer = peer;
            else
                at->second.peer += peer;
            at->second.who.add(image, processes.owner(image, cgroup));
            at->second.all &= told->all;
        }
    }
    return groups;
}

std::span<const Field<Context, PeerKey, PeerGroup>> peer_fields()
{
    return fields;
}

} // namespace gpusnoop::cudagap
