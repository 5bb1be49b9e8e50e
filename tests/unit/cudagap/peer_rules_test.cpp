// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/rules.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>

using namespace gpusnoop;

namespace {

struct Case {
    Peer peer;
    std::string words;
    void (*undo)(Peer&); // makes the rule no longer apply
};

const std::map<std::string_view, Case> cases = {
    {"retransmitted",
     {{.address = "10.0.0.2", .port = 9000, .rtts_us = {200}, .segments = 340, .retransmits = 12},
      "3.5% of TCP segments to 10.0.0.2:9000 were retransmitted (12 of 340)",
      [](Peer& peer) { peer.retransmits = 1; }}},
    {"out of order",
     {{.address = "10.0.0.3", .arrived = 1000, .out_of_order = 10},
      "1.0% of TCP segments from 10.0.0.3 arrived out of order (10 of 1000)",
      [](Peer& peer) { peer.arrived = 3000; }}},
    {"far away",
     {{.address = "fd00::2", .port = 80, .rtts_us = {80'000, 41'200, 41'000}},
      "the round trip to [fd00::2]:80 takes 41.2 ms (p95 of 3 connections: 80.0 ms)",
      [](Peer& peer) {
          peer.rtts_us = {80'000, 4000, 100};
      }}},
};

} // namespace

TEST_CASE("each peer rule applies only to a bad peer of a thread that waits for sockets")
{
    TimeParts parts{};
    parts[TIME_CPU] = 800;
    parts[TIME_SOCKET] = 50;
    parts[TIME_POLL] = 150;
    CHECK(peer_words(parts, {}).empty());
    CHECK(peer_words(parts, {Peer{.address = "10.0.0.1"}}).empty());
    for (const PeerRule& rule : peer_rules()) {
        INFO(rule.name);
        REQUIRE(cases.contains(rule.name));
        Case of = cases.at(rule.name);
        const Peer good{.address = "10.0.0.1", .rtts_us = {20}, .segments = 9, .retransmits = 0};
        CHECK(peer_words(parts, {good, of.peer}) == std::vector{of.words});
        CHECK(peer_words(parts, {of.peer, good}) == std::vector{of.words});
        TimeParts others{};
        others[TIME_PIPE] = 100;
        CHECK(peer_words(others, {of.peer}).empty());
        CHECK(peer_words({}, {of.peer}).empty());
        of.undo(of.peer);
        CHECK(!rule.severity(of.peer));
    }
    CHECK(peer_rules().size() == cases.size());
}
