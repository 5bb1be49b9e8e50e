// SPDX-License-Identifier: Apache-2.0
// The one thread's event loop: descriptors, timers and signals. No work is done in signal handlers.
#pragma once

#include "fd.hpp"

#include <chrono>
#include <deque>
#include <functional>

namespace gpusnoop {

class Loop {
public:
    // SIGINT, SIGTERM and SIGHUP end run(); a second one kills as if nobody had asked. SIGPIPE is ignored.
    Loop();
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    using Handler = std::function<void()>;

    // Calls the handler whenever fd (not owned) is readable, until remove(fd).
    void watch(int fd, Handler handler);
    void remove(int fd);

    void every(std::chrono::nanoseconds period, Handler handler);
    void after(std::chrono::nanoseconds delay, Handler handler);

    void before_wait(Handler handler) { before_wait_ = std::move(handler); } // each time the loop is about to sleep

    void run(); // until stop()
    void stop() { running_ = false; }

private:
    struct Source {
        int fd;
        Handler handler;
    };

    void add_timer(std::chrono::nanoseconds first, std::chrono::nanoseconds period, Handler handler);

    Fd epoll_;
    Fd signals_;
    std::deque<Fd> timers_;
    std::deque<Source> sources_; // a deque: handlers may add sources while one of them runs
    Handler before_wait_;
    bool running_ = true;
};

} // namespace gpusnoop
