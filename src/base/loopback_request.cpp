// SPDX-License-Identifier: Apache-2.0
#include "base/loopback_request.hpp"

#include "base/error.hpp"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <netinet/in.h>
#include <utility>

namespace gpusnoop {
namespace {

int connect_to(int fd, int family, uint16_t port)
{
    if (family == AF_INET) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    }
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    address.sin6_addr = in6addr_loopback;
    return connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

} // namespace

bool LoopbackRequest::connect_to_family(int family)
{
    socket_ = Fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    family_ = family;
    if (socket_ && (connect_to(socket_.get(), family, parameters_.port) == 0 || errno == EINPROGRESS))
        return true;
    connect_error_ = errno_text(errno);
    socket_ = Fd();
    return false;
}

void LoopbackRequest::start(uint64_t now_ns)
{
    if (pending() || !connect_error_.empty())
        return;
    start_ns_ = now_ns;
    sent_ = false;
    received_.clear();
    const bool both = parameters_.family == AF_UNSPEC;
    connect_to_family(both ? AF_INET : parameters_.family) || (both && connect_to_family(AF_INET6));
    if (pending() && send_request())
        connect_error_.clear();
}

bool LoopbackRequest::send_request()
{
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0) {
        const ssize_t sent = send(socket_.get(), parameters_.request.data(), parameters_.request.size(), MSG_NOSIGNAL);
        // A short write is an error: the send buffer of a new connection is large enough.
        sent_ = sent == static_cast<ssize_t>(parameters_.request.size());
        if (sent_ || (sent < 0 && (errno == EAGAIN || errno == ENOTCONN)))
            return true;
        error = sent < 0 ? errno : EPIPE;
    }
    if (parameters_.family == AF_UNSPEC && family_ == AF_INET && connect_to_family(AF_INET6)) {
        connect_error_.clear();
        return true;
    }
    connect_error_ = errno_text(error);
    socket_ = Fd();
    return false;
}

std::optional<LoopbackResponse> LoopbackRequest::poll(uint64_t now_ns)
{
    if (!pending())
        return connect_error_.empty() ? std::nullopt : std::optional(finish(std::exchange(connect_error_, {})));
    if (!sent_ && !send_request())
        return finish(std::exchange(connect_error_, {}));
    std::array<char, 65536> part;
    while (sent_) {
        const ssize_t got = recv(socket_.get(), part.data(), part.size(), 0);
        if (got == 0)
            return LoopbackResponse{std::exchange(received_, {}), finish({}).error};
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return finish(errno_text(errno));
        if (got < 0)
            break;
        received_.append(part.data(), static_cast<size_t>(got));
        if (received_.size() > parameters_.max_bytes)
            return finish(fmt::format("its response is longer than {} MiB", parameters_.max_bytes >> 20));
    }
    if (now_ns > start_ns_ + parameters_.timeout_ns)
        return finish(fmt::format("no complete response within {} s", parameters_.timeout_ns / 1'000'000'000));
    return std::nullopt;
}

LoopbackResponse LoopbackRequest::finish(std::string error)
{
    socket_ = Fd();
    received_.clear();
    return {.text = {}, .error = std::move(error)};
}

} // namespace gpusnoop
