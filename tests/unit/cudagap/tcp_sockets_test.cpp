// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/peers.hpp"

#include <arpa/inet.h>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>

using namespace gpusnoop;

namespace {

using Bytes = std::vector<std::byte>;

template<class T>
void append(Bytes& bytes, const T& value, size_t size = sizeof(T))
{
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), from, from + size);
    bytes.resize((bytes.size() + 3) / 4 * 4);
}

Bytes message(uint16_t type, const Bytes& body)
{
    Bytes bytes;
    append(bytes, nlmsghdr{.nlmsg_len = static_cast<uint32_t>(sizeof(nlmsghdr) + body.size()),
                           .nlmsg_type = type,
                           .nlmsg_flags = 0,
                           .nlmsg_seq = 0,
                           .nlmsg_pid = 0});
    bytes.insert(bytes.end(), body.begin(), body.end());
    return bytes;
}

Bytes socket_message(uint8_t family, const char* address, uint16_t port, const tcp_info& info,
                     size_t known = sizeof(tcp_info))
{
    inet_diag_msg head{};
    head.idiag_family = family;
    head.idiag_inode = 4711;
    head.id.idiag_dport = htons(port);
    head.id.idiag_cookie[0] = 7;
    head.id.idiag_cookie[1] = 1;
    inet_pton(family, address, head.id.idiag_dst);
    Bytes body;
    append(body, head);
    append(body, rtattr{.rta_len = sizeof(rtattr) + 1, .rta_type = INET_DIAG_SHUTDOWN});
    append(body, uint8_t{3});
    append(body, rtattr{.rta_len = static_cast<unsigned short>(sizeof(rtattr) + known), .rta_type = INET_DIAG_INFO});
    append(body, info, known);
    return message(SOCK_DIAG_BY_FAMILY, body);
}

tcp_info some_info()
{
    tcp_info info{};
    info.tcpi_rtt = 41'000;
    info.tcpi_total_retrans = 12;
    info.tcpi_data_segs_out = 340;
    info.tcpi_data_segs_in = 90;
    info.tcpi_bytes_sent = 5000;
    info.tcpi_bytes_retrans = 1000;
    info.tcpi_bytes_received = 77;
    info.tcpi_rcv_ooopack = 5;
    return info;
}

} // namespace

TEST_CASE("sockets of both families are parsed with their counters")
{
    std::vector<TcpSocket> sockets;
    Bytes bytes = socket_message(AF_INET, "10.0.0.2", 9000, some_info());
    for (const char* address : {"fd00::2", "::ffff:10.0.0.3"}) {
        const Bytes more = socket_message(AF_INET6, address, 80, {});
        bytes.insert(bytes.end(), more.begin(), more.end());
    }
    CHECK(parse_tcp_answer(bytes, sockets) == TcpAnswer::unfinished);
    REQUIRE(sockets.size() == 3);
    const TcpSocket& one = sockets.front();
    CHECK(one.cookie == (uint64_t{1} << 32 | 7));
    CHECK(one.inode == 4711);
    CHECK((one.address == "10.0.0.2" && one.port == 9000));
    CHECK((one.rtt_us == 41'000 && one.segments == 340 && one.retransmits == 12));
    CHECK((one.sent_bytes == 4000 && one.received_bytes == 77 && one.arrived == 90 && one.out_of_order == 5));
    CHECK((sockets[1].address == "fd00::2" && sockets[1].port == 80));
    CHECK(!sockets[1].rtt_us); // nothing acknowledged yet
    CHECK(sockets[1].retransmits == 0);
    CHECK(sockets[2].address == "10.0.0.3");
}

TEST_CASE("a shorter tcp_info of an older kernel leaves fields empty")
{
    std::vector<TcpSocket> sockets;
    parse_tcp_answer(socket_message(AF_INET, "10.0.0.2", 9000, some_info(), offsetof(tcp_info, tcpi_bytes_sent)),
                     sockets);
    REQUIRE(sockets.size() == 1);
    CHECK((sockets[0].retransmits == 12 && sockets[0].segments == 340));
    CHECK((!sockets[0].sent_bytes && !sockets[0].out_of_order));
}

TEST_CASE("an answer ends as complete, refused or unfinished")
{
    std::vector<TcpSocket> sockets;
    Bytes bytes = socket_message(AF_INET, "10.0.0.2", 9000, {});
    const Bytes done = message(NLMSG_DONE, Bytes(4)), refusal = message(NLMSG_ERROR, Bytes(20));
    bytes.insert(bytes.end(), done.begin(), done.end());
    CHECK(parse_tcp_answer(bytes, sockets) == TcpAnswer::complete);
    CHECK(sockets.size() == 1);
    CHECK(parse_tcp_answer(refusal, sockets) == TcpAnswer::refused);
    CHECK(parse_tcp_answer({}, sockets) == TcpAnswer::unfinished);
}

TEST_CASE("truncated messages, and messages with a zeroed byte, are handled")
{
    const Bytes whole = socket_message(AF_INET, "10.0.0.2", 9000, some_info());
    for (size_t size = 0; size < whole.size(); size++) {
        std::vector<TcpSocket> sockets;
        parse_tcp_answer(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)), sockets);
        CHECK(sockets.empty());
    }
    for (size_t at = 0; at < whole.size(); at++) {
        Bytes bytes = whole;
        bytes[at] = std::byte{0};
        std::vector<TcpSocket> sockets;
        parse_tcp_answer(bytes, sockets);
        CHECK(sockets.size() <= 1);
    }
}
