// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/peers.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/text.hpp"
#include "proc/threads.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <initializer_list>
#include <iterator>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

namespace gpusnoop {

namespace {

constexpr size_t max_sockets = 32768; // per namespace and address family; reading them takes about 30 ms
constexpr size_t max_descriptors = 8192;

// net/tcp_states.h
enum : uint8_t { time_wait = 6, closed = 7, listening = 10, handshake = 12, states = 14 };

constexpr uint32_t wanted_states =
    ((1U << states) - 1) & ~(1U << time_wait | 1U << closed | 1U << listening | 1U << handshake);

// A field of tcp_info; nullopt if this kernel's tcp_info does not have the field yet.
template<auto member>
std::optional<uint64_t> field(const tcp_info& info, size_t known)
{
    const auto& value = info.*member;
    const auto end =
        static_cast<size_t>(reinterpret_cast<const char*>(&value + 1) - reinterpret_cast<const char*>(&info));
    return end <= known ? std::optional<uint64_t>(value) : std::nullopt;
}

void add_info(TcpSocket& socket, std::span<const std::byte> attribute)
{
    tcp_info info{};
    const size_t known = std::min(sizeof(info), attribute.size());
    memcpy(&info, attribute.data(), known);
    if (const auto rtt = field<&tcp_info::tcpi_rtt>(info, known); rtt.value_or(0))
        socket.rtt_us = rtt;
    socket.segments = field<&tcp_info::tcpi_data_segs_out>(info, known);
    socket.retransmits = field<&tcp_info::tcpi_total_retrans>(info, known);
    socket.arrived = field<&tcp_info::tcpi_data_segs_in>(info, known);
    socket.out_of_order = field<&tcp_info::tcpi_rcv_ooopack>(info, known);
    socket.received_bytes = field<&tcp_info::tcpi_bytes_received>(info, known);
    const auto sent = field<&tcp_info::tcpi_bytes_sent>(info, known);
    const auto resent = field<&tcp_info::tcpi_bytes_retrans>(info, known);
    if (sent && resent)
        socket.sent_bytes = *sent - std::min(*resent, *sent);
}

std::string address_text(uint8_t family, const void* address)
{
    constexpr std::array<unsigned char, 12> of_ipv4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    const bool is_mapped = family == AF_INET6 && !memcmp(address, of_ipv4.data(), of_ipv4.size());
    std::array<char, INET6_ADDRSTRLEN> text{};
    return inet_ntop(is_mapped ? AF_INET : family, static_cast<const char*>(address) + (is_mapped ? of_ipv4.size() : 0),
                     text.data(), text.size())
               ? text.data()
               : std::string();
}

std::optional<TcpSocket> parse_socket(std::span<const std::byte> message)
{
    inet_diag_msg head{};
    if (message.size() < sizeof(head))
        return std::nullopt;
    memcpy(&head, message.data(), sizeof(head));
    TcpSocket socket{.cookie = uint64_t{head.id.idiag_cookie[1]} << 32 | head.id.idiag_cookie[0],
                     .inode = head.idiag_inode,
                     .address = address_text(head.idiag_family, head.id.idiag_dst),
                     .port = ntohs(head.id.idiag_dport)};
    message = message.subspan(sizeof(head));
    for (rtattr attribute{}; message.size() >= sizeof(attribute);) {
        memcpy(&attribute, message.data(), sizeof(attribute));
        if (attribute.rta_len < sizeof(attribute) || attribute.rta_len > message.size())
            break;
        if (attribute.rta_type == INET_DIAG_INFO)
            add_info(socket, message.subspan(sizeof(attribute), attribute.rta_len - sizeof(attribute)));
        message = message.subspan(std::min<size_t>(RTA_ALIGN(attribute.rta_len), message.size()));
    }
    return socket;
}

// Returns the name of the folder in /proc of a running thread, preferably the main thread. After the main thread has
// exited, its own folder shows no open files and no namespaces.
std::string readable(pid_t pid)
{
    return std::to_string(running_thread(pid).value_or(pid));
}

Fd open_namespace(const std::string& process)
{
    return Fd(open(("/proc/" + process + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
}

uint64_t namespace_inode(const std::string& process)
{
    struct stat st {};
    return stat(("/proc/" + process + "/ns/net").c_str(), &st) == 0 ? st.st_ino : 0;
}

Fd netlink_socket()
{
    return Fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
}

// Opens a netlink socket in the process's network namespace. A socket belongs to the namespace in which it is created,
// so this thread briefly enters that namespace.
Fd netlink_socket_of(pid_t pid)
{
    constexpr const char* self = "thread-self";
    const std::string process = readable(pid);
    if (namespace_inode(process) == namespace_inode(self))
        return netlink_socket();
    const Fd other = open_namespace(process), own = open_namespace(self);
    if (!other || !own || setns(other.get(), CLONE_NEWNET))
        return Fd();
    Fd made = netlink_socket();
    if (setns(own.get(), CLONE_NEWNET))
        throw Error("cannot return to gpusnoop's own network namespace: " + errno_text(errno));
    return made;
}

bool send_query(const Fd& netlink, uint8_t family)
{
    struct {
        nlmsghdr header;
        inet_diag_req_v2 request;
    } message{.header = {.nlmsg_len = sizeof(message),
                         .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                         .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                         .nlmsg_seq = 0,
                         .nlmsg_pid = 0},
              .request = {.sdiag_family = family,
                          .sdiag_protocol = IPPROTO_TCP,
                          .idiag_ext = 1 << (INET_DIAG_INFO - 1),
                          .pad = 0,
                          .idiag_states = wanted_states,
                          .id = {}}};
    return send(netlink.get(), &message, sizeof(message), 0) == sizeof(message);
}

// Reads an answer, and stops at max_sockets sockets.
TcpAnswer read_answer(const Fd& netlink, std::vector<TcpSocket>& sockets)
{
    constexpr timeval patience{.tv_sec = 1, .tv_usec = 0};
    setsockopt(netlink.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    std::vector<std::byte> buffer(64 << 10); // the kernel fills 32 KiB at most
    TcpAnswer answer = TcpAnswer::unfinished;
    for (const size_t limit = sockets.size() + max_sockets;
         answer == TcpAnswer::unfinished && sockets.size() < limit;) {
        const ssize_t got = recv(netlink.get(), buffer.data(), buffer.size(), 0);
        if (got <= 0)
            return TcpAnswer::refused;
        answer = parse_tcp_answer(std::span(buffer).first(static_cast<size_t>(got)), sockets);
    }
    return answer;
}

} // namespace

TcpAnswer parse_tcp_answer(std::span<const std::byte> messages, std::vector<TcpSocket>& sockets)
{
    for (nlmsghdr header{}; messages.size() >= sizeof(header);) {
        memcpy(&header, messages.data(), sizeof(header));
        if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > messages.size())
            return TcpAnswer::refused;
        if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR)
            return header.nlmsg_type == NLMSG_DONE ? TcpAnswer::complete : TcpAnswer::refused;
        if (header.nlmsg_type == SOCK_DIAG_BY_FAMILY)
            if (auto socket = parse_socket(messages.subspan(sizeof(header), header.nlmsg_len - sizeof(header))))
                sockets.push_back(std::move(*socket));
        messages = messages.subspan(std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), messages.size()));
    }
    return TcpAnswer::unfinished;
}

std::optional<TcpSockets> tcp_sockets(pid_t pid)
{
    TcpSockets found;
    size_t refused = 0;
    for (const uint8_t family : std::initializer_list<uint8_t>{AF_INET, AF_INET6}) {
        const Fd netlink = netlink_socket_of(pid); // one socket per family: if the first answer was not read
                                                   // completely, the rest of it is still in the first socket
        const TcpAnswer answer =
            netlink && send_query(netlink, family) ? read_answer(netlink, found.sockets) : TcpAnswer::refused;
        found.all &= answer == TcpAnswer::complete;
        refused += answer == TcpAnswer::refused;
    }
    return refused < 2 ? std::optional(std::move(found)) : std::nullopt;
}

uint64_t network_namespace(pid_t pid)
{
    return namespace_inode(readable(pid));
}

SocketInodes socket_inodes(pid_t pid)
{
    constexpr std::string_view prefix = "socket:[";
    SocketInodes found;
    size_t count = 0;
    std::error_code error;
    for (std::filesystem::directory_iterator entry("/proc/" + readable(pid) + "/fd", error), end;
         !error && entry != end; entry.increment(error)) {
        if (++count > max_descriptors) {
            found.all = false;
            break;
        }
        std::error_code closed;
        const std::string target = std::filesystem::read_symlink(entry->path(), closed);
        if (!target.starts_with(prefix))
            continue;
        if (const auto inode = leading_number<uint32_t>(std::string_view(target).substr(prefix.size())))
            found.inodes.insert(*inode);
    }
    return found;
}

namespace {

constexpr size_t max_scanned = 256; // limit of scanned processes

using Count = std::optional<uint64_t>;

void add(Count& to, const Count& more)
{
    if (more)
        to = to.value_or(0) + *more;
}

// Increase of a counter since the earlier scan. For a socket that did not exist then, the increase is from 0.
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
        const auto added = [&](Count TcpSocket::*of) { return since(socket.*of, before, of, were_all); };
        const Peer one{.address = socket.address,
                       .port = socket.port,
                       .connections = 1,
                       .rtts_us = socket.rtt_us ? std::vector{*socket.rtt_us} : std::vector<uint64_t>(),
                       .segments = added(&TcpSocket::segments),
                       .retransmits = added(&TcpSocket::retransmits),
                       .arrived = added(&TcpSocket::arrived),
                       .out_of_order = added(&TcpSocket::out_of_order),
                       .sent_bytes = added(&TcpSocket::sent_bytes),
                       .received_bytes = added(&TcpSocket::received_bytes)};
        if (const auto [at, is_new] = peers.emplace(one.address, one); !is_new)
            at->second += one;
    }
    std::vector<Peer> all;
    for (auto& [address, peer] : peers)
        all.push_back(std::move(peer));
    return all;
}

std::optional<PeersOf::Scan> PeersOf::scan_process(const ImageId& image, Scans& scans)
{
    const auto pid = static_cast<pid_t>(image.pid);
    const uint64_t number = network_namespace(pid);
    if (!number)
        return std::nullopt;
    const SocketInodes own = socket_inodes(pid); // sockets that the process opens later are ignored until the next scan
    auto found = scans.find(number);
    if (found == scans.end())
        found = scans.emplace(number, tcp_sockets(pid)).first;
    if (!found->second)
        return std::nullopt;
    Scan scan{.sockets = {}, .all = own.all && found->second->all};
    std::ranges::copy_if(found->second->sockets, std::back_inserter(scan.sockets),
                         [&](const TcpSocket& socket) { return own.inodes.contains(socket.inode); });
    return scan;
}

void PeersOf::track(const std::vector<ImageId>& images)
{
    Scans scans;
    for (const ImageId& image : images) {
        if (known_.size() >= max_scanned || known_.contains(image))
            continue;
        Known& known = known_[image];
        if (const auto scan = scan_process(image, scans)) {
            known.sockets = by_cookie(scan->sockets);
            known.all = scan->all;
        }
    }
}

void PeersOf::refresh()
{
    Scans scans;
    for (auto& [image, known] : known_) {
        const auto scan = scan_process(image, scans);
        known.result.reset();
        if (!scan)
            continue;
        known.result = {.peers = peers_of(scan->sockets, known.sockets, known.all), .all = scan->all};
        known.sockets = by_cookie(scan->sockets);
        known.all = scan->all;
    }
}

const PeersOf::Result* PeersOf::of(const ImageId& image) const
{
    const auto found = known_.find(image);
    return found != known_.end() && found->second.result ? &*found->second.result : nullptr;
}

void PeersOf::forget(const std::vector<ImageId>& images)
{
    for (const ImageId& image : images)
        known_.erase(image);
}

} // namespace gpusnoop
