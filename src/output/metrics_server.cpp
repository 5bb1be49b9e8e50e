// SPDX-License-Identifier: Apache-2.0
#include "output/metrics_server.hpp"

#include "base/error.hpp"
#include "base/options.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <netinet/in.h>
#include <optional>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>

namespace gpusnoop {
namespace {

// An IPv4 or IPv6 address with its port.
struct Address {
    sockaddr_in6 six{};
    sockaddr_in four{};
    bool is_six = false;

    const sockaddr* generic() const
    {
        return is_six ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
    }
    socklen_t size() const { return is_six ? sizeof(six) : sizeof(four); }
};

std::optional<Address> parse(std::string_view text)
{
    const size_t colon = text.rfind(':');
    std::string host(colon == text.npos ? "127.0.0.1" : text.substr(0, colon));
    const std::string_view port_text = colon == text.npos ? text : text.substr(colon + 1);
    const auto port = parse_number<uint16_t>(port_text);
    if (!port)
        return std::nullopt;
    Address address;
    address.is_six = host.starts_with('[') && host.ends_with(']');
    if (address.is_six) {
        host = host.substr(1, host.size() - 2);
        address.six.sin6_family = AF_INET6;
        address.six.sin6_port = htons(*port);
    } else {
        address.four.sin_family = AF_INET;
        address.four.sin_port = htons(*port);
    }
    void* to = address.is_six ? static_cast<void*>(&address.six.sin6_addr) : &address.four.sin_addr;
    if (inet_pton(address.is_six ? AF_INET6 : AF_INET, host.c_str(), to) != 1)
        return std::nullopt;
    return address;
}

Address bound_to(int socket)
{
    Address address;
    socklen_t size = sizeof(address.six);
    getsockname(socket, reinterpret_cast<sockaddr*>(&address.six), &size);
    address.is_six = address.six.sin6_family == AF_INET6;
    if (!address.is_six) {
        size = sizeof(address.four);
        getsockname(socket, reinterpret_cast<sockaddr*>(&address.four), &size);
    }
    return address;
}

} // namespace

MetricsServer::MetricsServer(std::string_view text) : events_(epoll_create1(EPOLL_CLOEXEC))
{
    const auto address = parse(text);
    if (!address)
        throw UsageError(
            fmt::format("--listen takes PORT, ADDRESS:PORT or [ADDRESS]:PORT with a numeric address, not '{}'", text));
    listening_ = Fd(socket(address->generic()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int yes = 1;
    if (!events_ || !listening_ || setsockopt(listening_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        bind(listening_.get(), address->generic(), address->size()) != 0 ||
        listen(listening_.get(), max_clients) != 0 || !listen_for_clients(true))
        throw Error(fmt::format("cannot listen on {}: {}", text, errno_text(errno)),
                    "choose another port with --listen, or stop the process that holds it (ss -ltnp)");
}

bool MetricsServer::listen_for_clients(bool on)
{
    epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
    paused_ = !on;
    return epoll_ctl(events_.get(), on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listening_.get(), &event) == 0;
}

std::string MetricsServer::address() const
{
    const Address address = bound_to(listening_.get());
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* from = address.is_six ? static_cast<const void*>(&address.six.sin6_addr) : &address.four.sin_addr;
    inet_ntop(address.is_six ? AF_INET6 : AF_INET, from, text.data(), text.size());
    const uint16_t port = ntohs(address.is_six ? address.six.sin6_port : address.four.sin_port);
    return fmt::format(fmt::runtime(address.is_six ? "[{}]:{}" : "{}:{}"), text.data(), port);
}

bool MetricsServer::is_local() const
{
    const Address address = bound_to(listening_.get());
    return address.is_six ? IN6_IS_ADDR_LOOPBACK(&address.six.sin6_addr)
                          : ntohl(address.four.sin_addr.s_addr) >> 24 == 127;
}

void MetricsServer::publish(std::string page)
{
    page_ = std::make_shared<const std::string>(std::move(page));
}

void MetricsServer::ready(uint64_t now_ns)
{
    std::array<epoll_event, max_clients + 1> events{};
    const int n = epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()), 0);
    // accepts new clients last, because accept_some() may disconnect a client that has an event in this list
    bool has_new = false;
    for (int i = 0; i < n; i++) {
        auto* client = static_cast<Client*>(events[static_cast<size_t>(i)].data.ptr);
        if (!client)
            has_new = true;
        else if (!(client->has_response() ? send_more(*client) : receive(*client)))
            clients_.remove_if([client](const Client& one) { return &one == client; });
    }
    if (has_new)
        accept_some(now_ns);
}

void MetricsServer::tick(uint64_t now_ns)
{
    clients_.remove_if([now_ns](const Client& client) { return now_ns - client.connected_ns > max_connection_ns; });
    if (paused_)
        listen_for_clients(true);
}

void MetricsServer::accept_some(uint64_t now_ns)
{
    for (size_t i = 0; i < max_clients; i++) {
        Fd socket(accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                listen_for_clients(false); // otherwise epoll would report the waiting client again and again
            return;
        }
        if (clients_.size() == max_clients)
            clients_.pop_front();
        Client& client = clients_.emplace_back();
        epoll_event event{.events = EPOLLIN, .data = {.ptr = &client}};
        client.connected_ns = now_ns;
        client.socket = std::move(socket);
        if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, client.socket.get(), &event) != 0)
            clients_.pop_back();
    }
}

bool MetricsServer::receive(Client& client)
{
    std::array<char, 2048> part;
    const ssize_t got = recv(client.socket.get(), part.data(), part.size(), 0);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    client.request.append(part.data(), static_cast<size_t>(got));
    if (client.request.find("\r\n\r\n") == std::string::npos && client.request.find("\n\n") == std::string::npos)
        return client.request.size() <= request_max;
    prepare_response(client);
    epoll_event event{.events = EPOLLOUT, .data = {.ptr = &client}};
    return epoll_ctl(events_.get(), EPOLL_CTL_MOD, client.socket.get(), &event) == 0 && send_more(client);
}

void MetricsServer::prepare_response(Client& client)
{
    const std::string_view request = client.request;
    const std::string_view line = request.substr(0, request.find_first_of("\r\n"));
    const size_t space = line.find(' ');
    const std::string_view method = line.substr(0, space);
    std::string_view path = space == line.npos ? std::string_view() : line.substr(space + 1);
    path = path.substr(0, path.find_first_of(" ?"));
    const bool head = method == "HEAD";

    std::string_view status = "200 OK", more;
    std::string text;
    if (method != "GET" && !head) {
        status = "405 Method Not Allowed";
        more = "Allow: GET, HEAD\r\n";
        text = "only GET\n";
    } else if (path == "/healthz") {
        text = "ok\n";
    } else if (path == "/") {
        text = "gpusnoop: metrics are at /metrics\n";
    } else if (path != "/metrics") {
        status = "404 Not Found";
        text = "metrics are at /metrics\n";
    }
    client.body = text.empty() ? page_ : std::make_shared<const std::string>(std::move(text));
    client.head = fmt::format("HTTP/1.1 {}\r\n{}Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                              "Content-Length: {}\r\nConnection: close\r\n\r\n",
                              status, more, client.body->size());
    if (head)
        client.body = std::make_shared<const std::string>();
    client.request = {};
}

bool MetricsServer::send_more(Client& client)
{
    const size_t head = client.head.size(), all = head + client.body->size();
    const std::string_view rest = client.sent < head ? std::string_view(client.head).substr(client.sent)
                                                     : std::string_view(*client.body).substr(client.sent - head);
    const ssize_t sent = send(client.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR;
    client.sent += static_cast<size_t>(sent);
    return client.sent < all; // the rest is sent when the socket is writable again
}

} // namespace gpusnoop
