// SPDX-License-Identifier: Apache-2.0
// What of its peers holds a process up that waits in sockets, in words: a table of rules, each of which speaks for
// itself of the peer that it is worst with.
#pragma once

#include "rows/thread_times.hpp"
#include "tools/cudagap/peers.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

struct PeerRule {
    std::string_view name;
    // How bad it is; nullopt: it is not.
    std::optional<double> (*look)(const Peer&);
    std::string (*words)(const Peer&);
};

std::span<const PeerRule> peer_rules();

// Of all rules that speak, in the table's order; none where the thread does not wait for sockets.
std::vector<std::string> peer_words(const TimeParts& parts, const std::vector<Peer>& peers);

} // namespace gpusnoop
