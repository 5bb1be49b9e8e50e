// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/peers.hpp"

#include "base/fd.hpp"

#include <arpa/inet.h>
#include <catch2/catch_test_macros.hpp>
#include <sys/socket.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

TcpSocket socket_to(std::string address, uint16_t port, uint64_t cookie, uint64_t retransmits, uint64_t rtt_us)
{
    return {.cookie = cookie,
            .inode = 1,
            .address = std::move(address),
            .port = port,
            .rtt_us = rtt_us,
            .segments = 100 * cookie,
            .retransmits = retransmits,
            .arrived = 1,
            .out_of_order = {},
            .sent_bytes = 10,
            .received_bytes = 20};
}

} // namespace

TEST_CASE("peers_of reports differences between two scans by address")
{
    const KnownSockets earlier{{1, socket_to("10.0.0.2", 9000, 1, 5, 100)}, {9, socket_to("10.0.0.9", 1, 9, 5, 100)}};
    std::vector now{socket_to("10.0.0.2", 9000, 1, 8, 300), socket_to("10.0.0.2", 9000, 2, 4, 100),
                    socket_to("fd00::1", 80, 3, 0, 7)};
    std::vector<Peer> peers = peers_of(now, earlier, true);
    REQUIRE(peers.size() == 2);
    CHECK((peers[0].name() == "10.0.0.2:9000" && peers[0].connections == 2));
    CHECK(peers[0].retransmits == 3 + 4); // the second socket is new
    CHECK((peers[0].segments == 200 && peers[0].sent_bytes == 10 && !peers[0].out_of_order));
    CHECK((peers[0].rtt_us(0.5) == 100 && peers[0].rtt_us(0.95) == 300));
    CHECK(peers[1].name() == "[fd00::1]:80");

    // If the earlier scan was incomplete, a socket that it lacks may be old. The growth of that socket's counters is
    // then unknown.
    peers = peers_of(now, earlier, false);
    CHECK(peers[0].retransmits == 3);
    CHECK((!peers[1].retransmits && peers[1].connections == 1));

    now[1].port = 9001;
    CHECK(peers_of(now, earlier, true)[0].name() == "10.0.0.2");
    CHECK(!Peer{}.rtt_us(0.5));
}

TEST_CASE("PeersOf finds the sockets of this process")
{
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    socklen_t length = sizeof(address);
    const Fd listener(socket(AF_INET6, SOCK_STREAM, 0)), one(socket(AF_INET6, SOCK_STREAM, 0));
    if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length))
        SKIP("no IPv6");
    REQUIRE(listen(listener.get(), 1) == 0);
    REQUIRE(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);

    PeersOf peers;
    ImageId self{};
    self.pid = static_cast<uint32_t>(getpid());
    peers.track({self});
    CHECK(!peers.of(self));
    REQUIRE(connect(one.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
    const Fd other(accept(listener.get(), nullptr, nullptr));
    REQUIRE(send(one.get(), "hello", 5, 0) == 5);
    peers.refresh();
    REQUIRE(peers.of(self));
    const auto& scanned = peers.of(self)->peers;
    REQUIRE(scanned.size() == 1);
    CHECK((scanned[0].address == "::1" && scanned[0].connections == 2 && !scanned[0].port));
    CHECK((scanned[0].sent_bytes == 5 && scanned[0].received_bytes == 5));
    peers.refresh();
    CHECK(peers.of(self)->peers.at(0).sent_bytes == 0);
    peers.forget({self});
    CHECK(!peers.of(self));
}
