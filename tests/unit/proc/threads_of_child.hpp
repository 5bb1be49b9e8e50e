// SPDX-License-Identifier: Apache-2.0
// Child process whose threads exit one by one, in the order that the test chooses.
#pragma once

#include "base/fd.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace gpusnoop {

class ThreadsOfChild {
public:
    // `others`: number of threads besides the main thread. `prepare`: function that the child runs before it starts
    // threads.
    explicit ThreadsOfChild(
        size_t others, const std::function<void()>& prepare = [] {})
        : pid_(fork())
    {
        if (pid_ == 0) {
            prepare();
            for (size_t i = 0; i < others; i++)
                std::thread([this] { exit_after(others_); }).detach();
            exit_after(main_);
        }
        wait_until([&] { return threads().size() == others + 1; });
    }
    ThreadsOfChild(const ThreadsOfChild&) = delete;
    ThreadsOfChild& operator=(const ThreadsOfChild&) = delete;
    ~ThreadsOfChild()
    {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }

    pid_t pid() const { return pid_; }

    // Ends the main thread, which remains as a zombie.
    void end_main() const
    {
        release(main_);
        wait_until([&] {
            std::string text;
            std::getline(std::ifstream(fmt::format("/proc/{}/stat", pid_)), text);
            return text.find(") Z ") != std::string::npos;
        });
    }

    // Ends one of the other threads and returns its id.
    pid_t end_one() const
    {
        const std::set<pid_t> before = threads();
        release(others_);
        wait_until([&] { return threads().size() < before.size(); });
        std::set<pid_t> ended;
        std::ranges::set_difference(before, threads(), std::inserter(ended, ended.end()));
        return *ended.begin();
    }

private:
    static void release(const Fd& event)
    {
        const uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = write(event.get(), &one, sizeof(one));
    }
    [[noreturn]] static void exit_after(const Fd& event)
    {
        uint64_t one = 0;
        [[maybe_unused]] const ssize_t got = read(event.get(), &one, sizeof(one));
        for (;;)
            syscall(SYS_exit, 0);
    }
    template<class Condition>
    static void wait_until(Condition condition)
    {
        while (!condition())
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::set<pid_t> threads() const
    {
        std::set<pid_t> all;
        for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid_)))
            all.insert(std::stoi(entry.path().filename()));
        return all;
    }

    Fd main_{eventfd(0, EFD_CLOEXEC)}, others_{eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)};
    pid_t pid_;
};

} // namespace gpusnoop
