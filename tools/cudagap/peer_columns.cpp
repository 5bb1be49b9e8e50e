// SPDX-License-Identifier: Apache-2.0
// Columns of --tcp: TCP connections by peer address.
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
                   "Address of the peer, with its port if all connections have the same."}
        .in_text([](const K&, const G& g, const C&) { return Cell(g.peer.name()); }),
    {{"", "peer_port", Unit::count}, json_only<C>, [](const K&, const G& g, const C&) { return cell_if(g.peer.port); }},
    {{"CONNS", "connections", Unit::count, 5},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.peer.connections); },
     "Number of connections at the end of the interval."},
    {{"RTT(us)", "rtt_p50_ns", Unit::ns_as_us, 8},
     always<C>,
     rtt<50>,
     "Round-trip time smoothed by the kernel (srtt): median and 95th percentile of the connections at the end of the "
     "interval. The peer's kernel acknowledges segments, so delays of the peer's processes are not included."},
    {{"RTT95(us)", "rtt_p95_ns", Unit::ns_as_us, 9}, always<C>, rtt<95>},
    {{"SEGS", "segments", Unit::count, 8},
     always<C>,
     of_peer<&Peer::segments>,
     "Data segments sent (SEGS), and segments of any kind that were retransmitted (RETRANS)."},
    {{"RETRANS", "retransmits", Unit::count, 7}, always<C>, of_peer<&Peer::retransmits>},
    {{"SENT", "sent_bytes", Unit::bytes, 7},
     always<C>,
     of_peer<&Peer::sent_bytes>,
     "Bytes sent, not counting retransmissions (SENT), and bytes received (RECEIVED)."},
    {{"RECEIVED", "received_bytes", Unit::bytes, 8}, always<C>, of_peer<&Peer::received_bytes>},
    {{"", "segments_received", Unit::count},
     json_only<C>,
     of_peer<&Peer::arrived>,
     "Data segments that arrived, and how many of them arrived out of order (OOO). The peer's retransmissions are not "
     "known on this side."},
    {{"OOO", "out_of_order", Unit::count, 5}, always<C>, of_peer<&Peer::out_of_order>},
    {{"", "connections_untold", Unit::count},
     json_only<C>,
     [](const K&, const G& g, const C&) { return g.all ? Cell() : Cell(uint64_t{1}); },
     "1 if some connections are missing: the process has more than 8192 descriptors, or its network namespace more "
     "than 32768 connections. At most 256 processes have rows."},
};

} // namespace

std::map<PeerKey, PeerGroup> group_peers(const std::vector<ThreadTime>& times, const PeersOf& peers,
                                         const CallView& view, Processes& processes)
{
    std::map<ImageId, cgroups> images; // each process, with the cgroups of one of its threads
    for (const ThreadTime& time : times)
        images.emplace(time.image, time.cgroup);
    std::map<PeerKey, PeerGroup> groups;
    for (const auto& [image, cgroup] : images) {
        const PeersOf::Result* result = peers.of(image);
        if (!result)
            continue;
        for (const Peer& peer : result->peers) {
            const PeerKey key{who_key(view.who, processes, image, 0, cgroup), peer.address};
            const auto [at, is_new] = groups.try_emplace(key);
            if (is_new)
                at->second.peer = peer;
            else
                at->second.peer += peer;
            at->second.who.add(image, processes.owner(image, cgroup));
            at->second.all &= result->all;
        }
    }
    return groups;
}

std::span<const Field<Context, PeerKey, PeerGroup>> peer_fields()
{
    return fields;
}

} // namespace gpusnoop::cudagap
