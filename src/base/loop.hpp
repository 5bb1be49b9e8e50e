// SPDX-License-Identifier: Apache-2.0
// Single-threaded event loop: descriptors, timers and termination signals.
#pragma once

#include "base/ending_signals.hpp"
#include "base/fd.hpp"

#include <chrono>
#include <deque>
#include <functional>

namespace gpusnoop {

class Loop {
public:
    // A termination signal makes run() return.
    explicit Loop(EndingSignals& signals);
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    using Handler = std::function<void()>;

    // Calls the handler whenever fd is readable, until remove(fd). Does not own fd.
    void watch(int fd, Handler handler);
    void remove(int fd);

    void every(std::chrono::nanoseconds period, Handler handler);
    void after(std::chrono::nanoseconds delay, Handler handler);

    // Sets a handler that is called before each sleep. If it returns true, there is more to do, and the loop does not
    // sleep.
    void before_wait(std::function<bool()> handler) { before_wait_ = std::move(handler); }

    void run(); // returns after stop(), or when a handler throws Interrupted
    void stop() { running_ = false; }
    bool stopped() const { return !running_; }

private:
    struct Source {
        int fd;
        Handler handler;
    };

    void add_timer(std::chrono::nanoseconds first, std::chrono::nanoseconds period, Handler handler);

    Fd epoll_;
    std::deque<Fd> timers_;
    std::deque<Source> sources_; // a deque, so that a running handler is not moved when it adds sources
    std::function<bool()> before_wait_;
    bool running_ = true;
};

} // namespace gpusnoop
