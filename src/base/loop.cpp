// SPDX-License-Identifier: Apache-2.0
#include "base/loop.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

timespec to_timespec(std::chrono::nanoseconds time)
{
    return {time.count() / 1'000'000'000, time.count() % 1'000'000'000};
}

} // namespace

Loop::Loop(EndingSignals& signals) : epoll_(epoll_create1(EPOLL_CLOEXEC))
{
    if (!epoll_)
        throw Error("cannot set up the event loop: " + errno_text(errno));
    watch(signals.descriptor(), [this, &signals] {
        if (signals.arrived())
            stop();
    });
}

Loop::~Loop() = default;

void Loop::watch(int fd, Handler handler)
{
    sources_.push_back({fd, std::move(handler)});
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event))
        throw Error("cannot watch a descriptor: " + errno_text(errno));
}

void Loop::remove(int fd)
{
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    // Only mark the source as removed, because its handler may be running now.
    for (Source& source : sources_)
        if (source.fd == fd)
            source.fd = -1;
}

void Loop::add_timer(std::chrono::nanoseconds first, std::chrono::nanoseconds period, Handler handler)
{
    Fd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    itimerspec spec{to_timespec(period), to_timespec(first)};
    if (!timer || timerfd_settime(timer.get(), 0, &spec, nullptr))
        throw Error("cannot set a timer: " + errno_text(errno));
    int fd = timer.get();
    timers_.push_back(std::move(timer));
    watch(fd, [fd, handler = std::move(handler)] {
        uint64_t expirations = 0;
        if (::read(fd, &expirations, sizeof(expirations)) == sizeof(expirations))
            handler();
    });
}

void Loop::every(std::chrono::nanoseconds period, Handler handler)
{
    add_timer(period, period, std::move(handler));
}

void Loop::after(std::chrono::nanoseconds delay, Handler handler)
{
    add_timer(std::max(delay, std::chrono::nanoseconds(1)), std::chrono::nanoseconds(0), std::move(handler));
}

void Loop::run()
try {
    std::array<epoll_event, 16> events{};
    while (running_) {
        const bool more = before_wait_ && before_wait_();
        int n = epoll_wait(epoll_.get(), events.data(), events.size(), more ? 0 : -1);
        if (n < 0 && errno != EINTR)
            throw Error("waiting for events failed: " + errno_text(errno));
        for (int i = 0; i < n && running_; i++) {
            auto source = std::ranges::find(sources_, events[static_cast<size_t>(i)].data.fd, &Source::fd);
            if (source != sources_.end())
                source->handler();
        }
    }
} catch (const Interrupted&) {
    stop();
}

} // namespace gpusnoop
