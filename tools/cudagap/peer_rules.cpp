// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/peer_rules.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace gpusnoop {
namespace {

using Bad = std::optional<double>;

// A share that is worth a word; a few at the begin of a connection are none.
Bad share_of(const std::optional<uint64_t>& some, const std::optional<uint64_t>& all)
{
    constexpr double much = 0.005;
    constexpr uint64_t few = 3;
    if (!some || *some < few || !all || !*all)
        return {};
    const double share = static_cast<double>(*some) / static_cast<double>(*all);
    return share < much ? Bad() : share;
}

double ms(uint64_t us)
{
    return static_cast<double>(us) / 1e3;
}

Bad sent_again(const Peer& peer)
{
    return share_of(peer.retransmits, peer.segments);
}

std::string sent_again_words(const Peer& peer)
{
    return fmt::format("of {} segments sent to {}, {} went again ({:.1f}%): they get lost on the way", *peer.segments,
                       peer.name(), *peer.retransmits, 100 * *sent_again(peer));
}

Bad out_of_order(const Peer& peer)
{
    return share_of(peer.out_of_order, peer.arrived);
}

std::string out_of_order_words(const Peer& peer)
{
    return fmt::format("of {} segments from {}, {} came out of order ({:.1f}%): others before them were lost or late",
                       *peer.arrived, peer.name(), *peer.out_of_order, 100 * *out_of_order(peer));
}

// Within a data center it is below 1 ms.
Bad far_away(const Peer& peer)
{
    constexpr uint64_t long_us = 5000;
    const auto rtt = peer.rtt_us(0.5);
    return rtt && *rtt >= long_us ? Bad(static_cast<double>(*rtt)) : Bad();
}

std::string far_away_words(const Peer& peer)
{
    std::string words = fmt::format("{} is {:.1f} ms away, there and back", peer.name(), ms(*peer.rtt_us(0.5)));
    if (peer.rtts_us.size() > 1)
        words += fmt::format(" (p95 of {} connections: {:.1f} ms)", peer.rtts_us.size(), ms(*peer.rtt_us(0.95)));
    return words;
}

constexpr PeerRule table[] = {
    {"sent again", sent_again, sent_again_words},
    {"out of order", out_of_order, out_of_order_words},
    {"far away", far_away, far_away_words},
};

// Most programs wait for sockets in poll.
bool waits_for_sockets(const TimeParts& parts)
{
    constexpr uint64_t tenth = 10;
    const uint64_t waits = parts[TIME_SOCKET] + parts[TIME_POLL];
    return waits && waits * tenth >= std::accumulate(parts.begin(), parts.end(), uint64_t{0});
}

} // namespace

std::span<const PeerRule> peer_rules()
{
    return table;
}

std::vector<std::string> peer_words(const TimeParts& parts, const std::vector<Peer>& peers)
{
    std::vector<std::string> words;
    if (peers.empty() || !waits_for_sockets(parts))
        return words;
    for (const PeerRule& rule : table) {
        const auto worst = std::ranges::max_element(peers, {}, rule.look);
        if (rule.look(*worst))
            words.push_back(rule.words(*worst));
    }
    return words;
}

} // namespace gpusnoop
