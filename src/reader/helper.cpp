// SPDX-License-Identifier: Apache-2.0
#include "reader/helper.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace gpusnoop {

Connection::Ends Connection::pair()
{
    std::array<int, 2> ends{-1, -1};
    const int error = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) ? errno : 0;
    return {Fd(ends[0]), Fd(ends[1]), error};
}

bool Connection::send(std::string_view bytes, int file, bool dont_wait)
{
    iovec part{const_cast<char*>(bytes.data()), bytes.size()}; // NOLINT(cppcoreguidelines-pro-type-const-cast)
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (file >= 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(header), &file, sizeof(file));
    }
    const int flags = MSG_NOSIGNAL | (dont_wait ? MSG_DONTWAIT : 0);
    ssize_t sent = 0;
    while ((sent = sendmsg(socket_.get(), &message, flags)) < 0 && errno == EINTR)
        ;
    closed_ |= sent < 0 && errno != EAGAIN;
    return sent == std::ssize(bytes);
}

std::optional<Message> Connection::receive(std::chrono::milliseconds timeout)
{
    pollfd readable{socket_.get(), POLLIN, 0};
    if (poll(&readable, 1, static_cast<int>(timeout.count())) <= 0)
        return std::nullopt;
    return receive();
}

std::optional<Message> Connection::receive()
{
    Message got;
    buffer_.resize(message_max);
    iovec part{buffer_.data(), buffer_.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t size = 0;
    while ((size = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    if (const cmsghdr* const header = CMSG_FIRSTHDR(&message); size > 0 && header && header->cmsg_type == SCM_RIGHTS) {
        int file = -1;
        std::memcpy(&file, CMSG_DATA(header), sizeof(file));
        got.file = Fd(file);
    }
    const bool ended = size <= 0 || message.msg_flags & MSG_TRUNC;
    closed_ |= ended; // stays true after a failed send(), even if earlier messages are still received
    if (ended)
        return std::nullopt;
    got.bytes = buffer_.substr(0, static_cast<size_t>(size));
    return got;
}

void Helper::Unmap::operator()(char* page) const
{
    munmap(page, status_max);
}

namespace {

char* shared_page(size_t size)
{
    void* const page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? nullptr : static_cast<char*>(page);
}

} // namespace

Helper::Helper(const std::function<void(Task&)>& task)
    : status_(shared_page(status_max)), ends_(Connection::pair()), child_({ends_.theirs.get()}, [&] { run(task); }),
      connection_(std::move(ends_.ours))
{
    ends_.theirs = {}; // with our copy open, we would not notice that the helper closes its end
}

void Helper::run(const std::function<void(Task&)>& task) const
{
    Task own{Connection(Fd(Child::first_fd)), [this](std::string_view status) {
                 if (status_)
                     status_.get()[status.copy(status_.get(), status_max - 1)] = '\0';
             }};
    task(own);
}

std::string Helper::status() const
{
    if (!status_)
        return {};
    std::string copy(status_.get(), status_max); // copied first, because the helper may be changing it
    copy.resize(std::min(copy.find('\0'), status_max - 1));
    return copy;
}

} // namespace gpusnoop
